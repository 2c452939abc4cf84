/* The page of nlv --serve: page.html, which the build converts to a C string. The server replaces "@NONCE@" with a new
 * nonce in each reply. */
#ifndef NLV_SERVE_PAGE_H
#define NLV_SERVE_PAGE_H

extern const char page_text[];

#endif
