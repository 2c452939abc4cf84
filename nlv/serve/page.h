/* The page of nlv --serve: page.html, which the build converts to a C text. "@NONCE@" stands for the nonce. */
#ifndef NLV_SERVE_PAGE_H
#define NLV_SERVE_PAGE_H

extern const char page_text[];

#endif
