#include "config.h"

#include "serve/picture.h"

#include <png.h>
#include <setjmp.h>
#include <zlib.h>

enum { FIRST_SIZE = 128 << 10 };

static void write_png_part(png_structp png, png_bytep data, size_t size)
{
    g_byte_array_append(png_get_io_ptr(png), data, (guint)size);
}

static void flush_png_part(png_structp png)
{
    (void)png;
}

GByteArray *picture_compress(cairo_surface_t *surface)
{
    GByteArray *bytes = g_byte_array_sized_new(FIRST_SIZE);
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
    if (info == NULL || setjmp(png_jmpbuf(png)) != 0) {
        png_destroy_write_struct(&png, &info);
        g_byte_array_free(bytes, TRUE);
        return NULL;
    }
    const int width = cairo_image_surface_get_width(surface), height = cairo_image_surface_get_height(surface);
    const int stride = cairo_image_surface_get_stride(surface);
    unsigned char *pixels = cairo_image_surface_get_data(surface);
    png_set_write_fn(png, bytes, write_png_part, flush_png_part);
    png_set_compression_level(png, 1);
    png_set_compression_strategy(png, Z_RLE);
    png_set_filter(png, PNG_FILTER_TYPE_BASE, PNG_FILTER_UP);
    png_set_IHDR(png, info, (png_uint_32)width, (png_uint_32)height, 8, PNG_COLOR_TYPE_RGB, PNG_INTERLACE_NONE,
                 PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
    png_write_info(png, info);
    png_set_bgr(png);
    png_set_filler(png, 0, G_BYTE_ORDER == G_LITTLE_ENDIAN ? PNG_FILLER_AFTER : PNG_FILLER_BEFORE);
    for (int y = 0; y < height; y++)
        png_write_row(png, pixels + (ptrdiff_t)y * stride);
    png_write_end(png, NULL);
    png_destroy_write_struct(&png, &info);
    return bytes;
}
