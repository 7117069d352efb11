// A small HTTP server on the loopback, which lives as long as the object: for tests of downloads.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace tandem::test {

struct HttpRequest {
  std::string path;                            // with what follows '?'
  std::map<std::string, std::string> headers;  // by their names in small letters
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::map<std::string, std::string> headers = {};
  size_t cut_after = SIZE_MAX;  // bytes of the body, after which the connection ends
};

class HttpServer {
 public:
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  explicit HttpServer(Handler handler) : handler_(std::move(handler)) {
    socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    auto* plain = reinterpret_cast<sockaddr*>(&address);
    if (socket_ < 0 || bind(socket_, plain, size) != 0 || listen(socket_, 16) != 0 ||
        getsockname(socket_, plain, &size) != 0) {
      throw std::runtime_error("no server on the loopback");
    }
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~HttpServer() {
    shutdown(socket_, SHUT_RDWR);
    thread_.join();
    close(socket_);
  }
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] int port() const { return port_; }
  // Those that were answered so far.
  [[nodiscard]] std::vector<HttpRequest> requests() const {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }

 private:
  void serve() {
    for (;;) {
      const int connection = accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
      if (connection < 0) return;
      const HttpRequest request = read_request(connection);
      {
        const std::scoped_lock lock(mutex_);
        requests_.push_back(request);
      }
      answer(connection, handler_(request));
      close(connection);
    }
  }

  static HttpRequest read_request(int connection) {
    std::string text;
    for (char c = 0;
         text.find("\r\n\r\n") == std::string::npos && ::read(connection, &c, 1) == 1;) {
      text += c;
    }
    HttpRequest request;
    const size_t begin = text.find(' ') + 1;
    request.path = text.substr(begin, text.find(' ', begin) - begin);
    for (size_t line = text.find("\r\n"); line + 2 < text.size();
         line = text.find("\r\n", line + 2)) {
      const size_t end = text.find("\r\n", line + 2), colon = text.find(": ", line + 2);
      if (colon == std::string::npos || colon > end) continue;
      std::string name = text.substr(line + 2, colon - line - 2);
      for (char& c : name) c = static_cast<char>(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
      request.headers[name] = text.substr(colon + 2, end - colon - 2);
    }
    return request;
  }

  static void answer(int connection, const HttpResponse& response) {
    std::string text = "HTTP/1.1 " + std::to_string(response.status) + " X\r\n";
    for (const auto& [name, value] : response.headers) text += name + ": " + value + "\r\n";
    text +=
        "Content-Length: " + std::to_string(response.body.size()) + "\r\nConnection: close\r\n\r\n";
    text += response.body.substr(0, response.cut_after);
    for (size_t sent = 0; sent < text.size();) {
      const ssize_t bytes = send(connection, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
      if (bytes <= 0) return;
      sent += static_cast<size_t>(bytes);
    }
  }

  Handler handler_;
  int socket_ = -1, port_ = 0;
  mutable std::mutex mutex_;
  std::vector<HttpRequest> requests_;
  std::thread thread_;
};

}  // namespace tandem::test
