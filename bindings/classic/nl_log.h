/*
 * Logs by name, as in NetLogger 3. See nl.h for formats, levels and how to compile.
 *
 *   NL_logger_module("dbg", "/tmp/a.log", NL_LVL_INFO, NL_TYPE_APP, "");
 *   NL_info("dbg", "write.data", "size=i", 49332);
 *   NL_logger_del();
 */
#ifndef NETLOGGER_CLASSIC_NL_LOG_H
#define NETLOGGER_CLASSIC_NL_LOG_H

#include "nl.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The types of modules. Modules of all types write the same records. */
typedef enum { NL_TYPE_APP, NL_TYPE_DBG } NL_type_t;

/*
 * Add a module: a log with a name. See NL_open for url. format and its arguments set the fields that precede the fields
 * of each event. If the module exists, the functions replace its log. Return NL_OK. Return NL_ERROR if module is NULL,
 * the destination cannot be opened, the format is invalid, or memory runs out.
 */
NL_result_t NL_logger_module(const char *module, const char *url, NL_level_t level, NL_type_t type, const char *format,
                             ...);
NL_result_t NL_logger_module_const(const char *module, const char *url, NL_level_t level, const char *format, ...);

/* Write an event to a module. Return the same values as NL_write, or NL_ERROR if the module does not exist. */
NL_result_t NL_fatal(const char *module, const char *event, const char *format, ...);
NL_result_t NL_error(const char *module, const char *event, const char *format, ...);
NL_result_t NL_warn(const char *module, const char *event, const char *format, ...);
NL_result_t NL_info(const char *module, const char *event, const char *format, ...);
NL_result_t NL_debug(const char *module, const char *event, const char *format, ...);
NL_result_t NL_debug1(const char *module, const char *event, const char *format, ...);
NL_result_t NL_debug2(const char *module, const char *event, const char *format, ...);
NL_result_t NL_debug3(const char *module, const char *event, const char *format, ...);

/* Returns the address of this host, like NL_get_ipaddr. */
static __inline__ char *ipaddr(void)
{
    return NL_get_ipaddr();
}

/* Removes all modules, and flushes and closes their logs. */
void NL_logger_del(void);

#ifdef __cplusplus
}
#endif

#endif
