// Files over HTTP and HTTPS, by libcurl, which is loaded when the first download begins: a program
// that downloads nothing starts without it. Proxies are those of http_proxy, https_proxy and
// no_proxy, certificates those of CURL_CA_BUNDLE, SSL_CERT_FILE and SSL_CERT_DIR.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>

namespace tandem {

// A request that the server has answered, or why there is no answer.
struct HttpAnswer {
  long status = 0;      // 200, 404, ...; 0: none
  std::string failure;  // of the connection; "" if the answer is whole
};

class HttpClient {
 public:
  // `token`: sent to the first host of each request, and to no other that it leads to; or "".
  // Error where there is no libcurl.
  explicit HttpClient(std::string token);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Gives the body of a 200 or 206 to `take` in pieces, from the byte `begin` on where the server
  // can do that (206). `take` returns false to end the transfer.
  [[nodiscard]] HttpAnswer get(
      const std::string& url, uint64_t begin,
      const std::function<bool(long status, const char* data, size_t bytes)>& take);

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  std::string token_;
};

}  // namespace tandem
