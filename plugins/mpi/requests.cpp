#include "plugins/mpi/requests.h"

#include "plugins/sdk.h"

namespace tandem::mpi {

namespace {

std::string text_of(int code) {
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

}  // namespace

void require_success(int code, const char* what) {
  if (code == MPI_SUCCESS) return;
  throw sdk::Refusal(TANDEM_FAILED, sdk::text(what, ": ", text_of(code)));
}

void Requests::start(Transfer& transfer) {
  const std::vector<tandem_part>& parts = transfer.parts;
  if (transfer.kind == Kind::broadcast) {
    for (const tandem_part& part : parts) {
      MPI_Request request = MPI_REQUEST_NULL;
      require_success(MPI_Ibcast(part.address, static_cast<int>(part.bytes), MPI_BYTE,
                                 transfer.peer, MPI_COMM_WORLD, &request),
                      "MPI_Ibcast");
      add(transfer, request);
    }
    return;
  }
  if (parts.size() == 1) {
    return post(transfer, parts[0].address, static_cast<int>(parts[0].bytes), MPI_BYTE);
  }
  std::vector<int> lengths;
  std::vector<MPI_Aint> addresses;
  for (const tandem_part& part : parts) {
    lengths.push_back(static_cast<int>(part.bytes));
    MPI_Get_address(part.address, &addresses.emplace_back());
  }
  MPI_Datatype type = MPI_DATATYPE_NULL;
  require_success(MPI_Type_create_hindexed(static_cast<int>(parts.size()), lengths.data(),
                                           addresses.data(), MPI_BYTE, &type),
                  "MPI_Type_create_hindexed");
  require_success(MPI_Type_commit(&type), "MPI_Type_commit");
  post(transfer, MPI_BOTTOM, 1, type);
  MPI_Type_free(&type);  // when the message is done
}

void Requests::ask(std::vector<Transfer*>& ended) {
  if (requests_.empty()) return;
  int count = 0;
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
  const int code = MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count,
                                indices_.data(), statuses_.data());
  if (code != MPI_ERR_IN_STATUS) require_success(code, "MPI_Testsome");
  for (int i = 0; i < count; ++i) {
    Transfer*& transfer = transfers_[indices_[i]];
    if (code == MPI_ERR_IN_STATUS && statuses_[i].MPI_ERROR != MPI_SUCCESS) {
      transfer->failure = text_of(statuses_[i].MPI_ERROR);
    }
    if (--transfer->under_way == 0) ended.push_back(transfer);
    transfer = nullptr;
  }
  std::erase(requests_, MPI_REQUEST_NULL);
  std::erase(transfers_, nullptr);
}

void Requests::give_up(const std::string& reason, std::vector<Transfer*>& ended) {
  reason_ = reason.empty() ? "MPI gives no reason" : reason;
  for (Transfer* transfer : transfers_) {
    transfer->failure = reason_;
    if (--transfer->under_way == 0) ended.push_back(transfer);
  }
  requests_.clear();
  transfers_.clear();
}

void Requests::add(Transfer& transfer, MPI_Request request) {
  requests_.push_back(request);
  transfers_.push_back(&transfer);
  ++transfer.under_way;
}

void Requests::post(Transfer& transfer, void* address, int count, MPI_Datatype type) {
  const bool sends = transfer.kind == Kind::send;
  MPI_Request request = MPI_REQUEST_NULL;
  const int code = sends ? MPI_Isend(address, count, type, transfer.peer, transfer.channel,
                                     MPI_COMM_WORLD, &request)
                         : MPI_Irecv(address, count, type, transfer.peer, transfer.channel,
                                     MPI_COMM_WORLD, &request);
  require_success(code, sends ? "MPI_Isend" : "MPI_Irecv");
  add(transfer, request);
}

}  // namespace tandem::mpi
