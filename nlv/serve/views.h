/*
 * The answers to the page's requests: pictures of the scene, and JSON documents about records and requests.
 *
 * All drawing and measuring of text happens in one thread, because the scene keeps its layouts of text and its pictures
 * of the overview in static variables. The threads of the HTTP server wait for the drawing thread, and compress the
 * pictures themselves. Any thread may call views_answer.
 */
#ifndef NLV_SERVE_VIEWS_H
#define NLV_SERVE_VIEWS_H

#include "serve/query.h"

typedef struct views views;

typedef struct views_look {
    int64_t since_ns, until_ns; /* the first view, or INT64_MIN and INT64_MAX */
    const char *title;          /* NULL: the drawing's title */
    bool is_dark;
    bool shows_threads; /* the page shows the threads at first */
} views_look;

/* Returns the views of a model. The model must outlive the views. */
views *views_new(model *m, const views_look *look);
void views_free(views *v);

/* Stores a notice for the page. Takes ownership of `text`. Any thread may call this function. */
void views_tell(views *v, char *text);

typedef struct answer {
    const char *type; /* media type */
    GByteArray *body;
    char *place; /* JSON with the content and layout of the picture; NULL: not a picture */
} answer;

/*
 * Answers a request for a path, such as "/picture". Returns false if there is no such path. On another failure, returns
 * true, sets `type` to NULL and sets the error. The caller frees the members with answer_clear.
 */
bool views_answer(views *v, const char *path, const query *q, answer *a);
void answer_clear(answer *a);

#endif
