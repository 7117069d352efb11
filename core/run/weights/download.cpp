#include "core/run/weights/download.h"

#include "core/base/error.h"

#ifdef TANDEM_WITH_CURL
#include <curl/curl.h>
#include <dlfcn.h>

#include <array>
#include <cstdlib>
#endif

namespace tandem {

#ifdef TANDEM_WITH_CURL
namespace {

struct Transfer {
  const std::function<bool(long status, const char* data, size_t bytes)>* take;
  decltype(&curl_easy_getinfo) get_info;
  CURL* handle;
  bool was_ended = false;
};

size_t receive(char* data, size_t one, size_t bytes, void* user) {
  auto& transfer = *static_cast<Transfer*>(user);
  long status = 0;
  transfer.get_info(transfer.handle, CURLINFO_RESPONSE_CODE, &status);
  if (status != 200 && status != 206) return one * bytes;  // the page of an error
  // No exception may pass through C.
  try {
    if ((*transfer.take)(status, data, one * bytes)) return one * bytes;
  } catch (...) {
  }
  transfer.was_ended = true;
  return 0;
}

const char* variable(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* value = std::getenv(name);
    if (value != nullptr && *value != '\0') return value;
  }
  return nullptr;
}

}  // namespace

struct HttpClient::Library {
  Library() {
    for (const char* name : {"libcurl.so.4", "libcurl-gnutls.so.4"}) {
      if (handle == nullptr) handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (handle == nullptr) {
      throw error("nothing can be downloaded: libcurl is not installed (Debian: libcurl4)");
    }
    find("curl_easy_init", &init);
    find("curl_easy_cleanup", &cleanup);
    find("curl_easy_setopt", &set);
    find("curl_easy_perform", &perform);
    find("curl_easy_getinfo", &get_info);
    find("curl_easy_strerror", &text_of);
    find("curl_slist_append", &append);
    find("curl_slist_free_all", &free_list);
  }
  template <class Function>
  void find(const char* name, Function** function) const {
    *function = reinterpret_cast<Function*>(dlsym(handle, name));
    if (*function == nullptr) throw error("nothing can be downloaded: libcurl has no {}", name);
  }

  void* handle = nullptr;  // kept: libcurl's own threads and atexit handlers may run until the end
  decltype(::curl_easy_init)* init = nullptr;
  decltype(::curl_easy_cleanup)* cleanup = nullptr;
  decltype(::curl_easy_setopt)* set = nullptr;
  decltype(::curl_easy_perform)* perform = nullptr;
  decltype(::curl_easy_getinfo)* get_info = nullptr;
  decltype(::curl_easy_strerror)* text_of = nullptr;
  decltype(::curl_slist_append)* append = nullptr;
  decltype(::curl_slist_free_all)* free_list = nullptr;
};

HttpClient::HttpClient(std::string token)
    : library_(std::make_unique<Library>()), token_(std::move(token)) {}

HttpAnswer HttpClient::get(
    const std::string& url, uint64_t begin,
    const std::function<bool(long status, const char* data, size_t bytes)>& take) {
  const Library& curl = *library_;
  CURL* handle = curl.init();
  if (handle == nullptr) throw error("nothing can be downloaded: libcurl does not start");
  std::array<char, CURL_ERROR_SIZE> reason{};
  Transfer transfer{&take, curl.get_info, handle};
  // libcurl sends it to the host of `url` only, also after a redirection.
  curl_slist* headers = nullptr;
  if (!token_.empty()) {
    headers = curl.append(headers, ("Authorization: Bearer " + token_).c_str());
  }
  const std::string range = fmt::format("{}-", begin);
  const char* later = url.starts_with("https:") ? "https" : "http,https";
  constexpr long redirections = 10, seconds_to_connect = 30, seconds_without_a_byte = 60;
  curl.set(handle, CURLOPT_URL, url.c_str());
  curl.set(handle, CURLOPT_PROTOCOLS_STR, "http,https");
  curl.set(handle, CURLOPT_REDIR_PROTOCOLS_STR, later);
  curl.set(handle, CURLOPT_FOLLOWLOCATION, 1L);
  curl.set(handle, CURLOPT_MAXREDIRS, redirections);
  curl.set(handle, CURLOPT_CONNECTTIMEOUT, seconds_to_connect);
  curl.set(handle, CURLOPT_LOW_SPEED_LIMIT, 1L);
  curl.set(handle, CURLOPT_LOW_SPEED_TIME, seconds_without_a_byte);
  curl.set(handle, CURLOPT_NOSIGNAL, 1L);
  curl.set(handle, CURLOPT_USERAGENT, "tandem");
  curl.set(handle, CURLOPT_HTTPHEADER, headers);
  curl.set(handle, CURLOPT_ERRORBUFFER, reason.data());
  curl.set(handle, CURLOPT_WRITEFUNCTION, receive);
  curl.set(handle, CURLOPT_WRITEDATA, &transfer);
  if (begin > 0) curl.set(handle, CURLOPT_RANGE, range.c_str());
  if (const char* file = variable({"CURL_CA_BUNDLE", "REQUESTS_CA_BUNDLE", "SSL_CERT_FILE"})) {
    curl.set(handle, CURLOPT_CAINFO, file);
  }
  if (const char* folder = variable({"SSL_CERT_DIR"})) {
    curl.set(handle, CURLOPT_CAPATH, folder);
  }
  const CURLcode code = curl.perform(handle);
  HttpAnswer answer;
  curl.get_info(handle, CURLINFO_RESPONSE_CODE, &answer.status);
  if (code != CURLE_OK && !transfer.was_ended) {
    answer.failure = reason[0] != '\0' ? reason.data() : curl.text_of(code);
  }
  curl.cleanup(handle);
  curl.free_list(headers);
  return answer;
}

#else

struct HttpClient::Library {};

HttpClient::HttpClient(std::string) {
  throw error(
      "nothing can be downloaded: this build has no libcurl (Debian: libcurl4-openssl-dev)");
}

HttpAnswer HttpClient::get(
    const std::string&, uint64_t,
    const std::function<bool(long status, const char* data, size_t bytes)>&) {
  return {};
}

#endif

HttpClient::~HttpClient() = default;

}  // namespace tandem
