/* Transports: messages between the processes ("ranks") of one job. A part of the plugin ABI with a
 * version of its own. Every rank opens the transport once; messages between two ranks on
 * one channel arrive in the order in which they were sent. */
#pragma once

#include "common.h"

#ifdef __cplusplus
extern "C" {
#endif

#define TANDEM_TRANSPORTS_MAJOR 2
#define TANDEM_TRANSPORTS_MINOR 0

/* One rank's end of the job. */
typedef struct tandem_communicator tandem_communicator;

/* Bytes in memory that the host can address. It never grows: arrays of it have no stride. */
typedef struct tandem_part {
  void* address;
  int64_t bytes;
} tandem_part;

typedef struct tandem_transport {
  uint32_t struct_size;
  const char* name; /* "mpi" */
  const char* help; /* one line */
  /* Called once in a process, by all ranks. */
  tandem_status (*open)(tandem_communicator** communicator);
  /* Waits until all ranks close theirs; after abort() it does not wait. */
  void (*close)(tandem_communicator*);
  int32_t (*rank)(tandem_communicator*); /* 0, 1, ... */
  int32_t (*size)(tandem_communicator*); /* the number of ranks */
  /* One message made of all parts, of which those without bytes are left out. Both return when the
   * parts' memory may be used again; a send may wait for the receive. The receiver names as many
   * bytes as the sender, in parts of its own. Thread-safe; one thread at a time uses a channel
   * between two ranks in one direction. Channels are numbered from 0. */
  tandem_status (*send)(tandem_communicator*, int32_t peer, int32_t channel,
                        const tandem_part* parts, uint32_t part_count);
  tandem_status (*receive)(tandem_communicator*, int32_t peer, int32_t channel,
                           const tandem_part* parts, uint32_t part_count);
  /* From rank `root` to all others; called by all ranks. */
  tandem_status (*broadcast)(tandem_communicator*, int32_t root, void* data, int64_t bytes);
  /* This rank gives up: calls that wait, and later ones, return TANDEM_FAILED. When the process
   * then ends, the job's launcher ends the other ranks. Thread-safe. */
  void (*abort)(tandem_communicator*);
} tandem_transport;

/* What a module offers. */
typedef struct tandem_transports {
  uint32_t struct_size;
  int32_t major, minor; /* TANDEM_TRANSPORTS_MAJOR and _MINOR of the header it was built with */
  uint32_t transport_count;
  const tandem_transport* const* transports;
} tandem_transports;

#ifdef __cplusplus
}
#endif
