/* The ABI between Tandem and its plugins: the only thing that both sides share. C11, integers,
 * plain structs, opaque handles and borrowed strings. No exception, no C++ type and no owned memory
 * crosses it. docs/reference/abi.md is the promise about versions.
 *
 * The first two fields of tandem_host and tandem_plugin are always abi_major and abi_minor. A
 * struct that begins with struct_size grows only at its end. A reader uses a field only if
 * struct_size covers it. A writer writes only fields that the receiver's struct_size, or element
 * size, covers, and leaves struct_size as it is.
 *
 * A call that can fail returns a tandem_status. The others cannot fail, or say failure by their
 * result. Before a plugin returns a failing status it passes the reason to host->explain().
 *
 * Strings are UTF-8, NUL-terminated, and owned by whoever passes them. A struct, array or string
 * that is passed to a call is valid until the call returns, unless its comment says more: whoever
 * needs it later copies it. A plugin's tables and their strings live as long as the process. */
#pragma once

#include "abi/backends.h"
#include "abi/common.h"
#include "abi/datasets.h"
#include "abi/layers.h"
#include "abi/transports.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header and abi/common.h. The other headers have versions of their own. */
#define TANDEM_ABI_MAJOR 2
#define TANDEM_ABI_MINOR 0
#define TANDEM_ENTRY_SYMBOL "tandem_plugin_entry"

/* What a module offers. A part that is NULL is not offered. */
typedef struct tandem_plugin {
  int32_t abi_major, abi_minor;
  uint32_t struct_size;
  const char* name;
  const char* version;
  const tandem_layers* layers;
  const tandem_datasets* datasets;
  const tandem_backends* backends;
  const tandem_transports* transports;
} tandem_plugin;

/* The type of the one exported symbol. It returns NULL, with a reason, if the plugin cannot serve
 * this machine. */
typedef const tandem_plugin* (*tandem_plugin_entry_function)(const tandem_host*);

#ifdef __cplusplus
}
#endif
