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

/* One end of a link, on which one device sends to a device of another rank. */
typedef struct tandem_device_link tandem_device_link;

#define TANDEM_LINK_KEY_BYTES 128

/* Messages from memory of a device to that of a device of another rank, which streams issue. All
 * ranks open and close their links one after the other, in one order of all links. */
typedef struct tandem_device_transport {
  uint32_t struct_size;
  const char* device_kind; /* "cuda"; a kind of devices has one such transport */
  const char* help;        /* one line, which begins with the name for people */
  /* The key of a new link, which the caller takes to the other end. Called where it sends. */
  tandem_status (*make_key)(void* key);
  /* Inside a work of the device. Waits for the other end, at most that long. */
  tandem_status (*open)(const tandem_call*, const void* key, int32_t receives, double seconds,
                        tandem_device_link**);
  /* Inside a work: sends memory of the device, or receives it, when the work's stream comes to it.
   * Both ends name the same numbers of bytes in the same order, and the streams that they use for
   * the link are one on each side. */
  tandem_status (*transfer)(tandem_device_link*, const tandem_call*, void* memory, int64_t bytes);
  /* Whether the link works. Else, for instance when the other rank is gone, transfers that were
   * issued may never end before abort(). Thread-safe. */
  tandem_status (*check)(tandem_device_link*);
  /* What was issued ends, with any result; all calls but close() fail. Thread-safe. */
  void (*abort)(tandem_device_link*);
  /* When all transfers are done, or after abort(). Waits at most that long for the other end. */
  void (*close)(tandem_device_link*, double seconds);
} tandem_device_transport;

/* What a module offers. */
typedef struct tandem_transports {
  uint32_t struct_size;
  int32_t major, minor; /* TANDEM_TRANSPORTS_MAJOR and _MINOR of the header it was built with */
  uint32_t transport_count;
  const tandem_transport* const* transports;
  uint32_t device_transport_count;
  const tandem_device_transport* const* device_transports;
} tandem_transports;

#ifdef __cplusplus
}
#endif
