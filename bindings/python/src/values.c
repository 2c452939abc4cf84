#include "core.h"

static int own_bytes(PyObject *bytes, nl_string *out, PyObject **keep)
{
    char *data;
    Py_ssize_t size;
    if (bytes == NULL)
        return -1;
    if (PyBytes_AsStringAndSize(bytes, &data, &size) < 0) {
        Py_DECREF(bytes);
        return -1;
    }
    *out = (nl_string){data, (size_t)size};
    *keep = bytes;
    return 0;
}

int nlpy_take_text(PyObject *text, nl_string *bytes, PyObject **keep)
{
    PyObject *encoded = PyUnicode_AsUTF8String(text);
    if (encoded == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
        /*
         * Surrogate escapes represent bytes that were not UTF-8 when Python read them, as in file names. Other lone
         * surrogates are encoded unchanged.
         */
        PyErr_Clear();
        encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogateescape");
        if (encoded == NULL && PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) {
            PyErr_Clear();
            encoded = PyUnicode_AsEncodedString(text, "utf-8", "surrogatepass");
        }
    }
    return own_bytes(encoded, bytes, keep);
}

static int take_as_text(PyObject *value, nl_field *field, PyObject **keep)
{
    PyObject *text = PyObject_Str(value);
    if (text == NULL)
        return -1;
    field->type = NL_TYPE_STRING;
    int result = nlpy_take_text(text, &field->string, keep);
    Py_DECREF(text);
    return result;
}

/*
 * Converts an integer of more than 64 bits to text. Uses hexadecimal digits if the integer has too many digits for
 * Python to print. Returns 0, or -1 with an exception.
 */
static int take_huge(PyObject *value, nl_field *field, PyObject **keep)
{
    PyObject *plain = PyNumber_Long(value), *text;
    if (plain == NULL)
        return -1;
    text = PyObject_Str(plain);
    if (text == NULL && PyErr_ExceptionMatches(PyExc_ValueError)) {
        PyErr_Clear();
        text = PyNumber_ToBase(plain, 16);
    }
    Py_DECREF(plain);
    if (text == NULL)
        return -1;
    field->type = NL_TYPE_STRING;
    int result = nlpy_take_text(text, &field->string, keep);
    Py_DECREF(text);
    return result;
}

static int take_int(PyObject *value, nl_field *field, PyObject **keep)
{
    int overflow;
    field->type = NL_TYPE_INT;
    field->int_value = PyLong_AsLongLongAndOverflow(value, &overflow);
    if (overflow == 0)
        return field->int_value == -1 && PyErr_Occurred() != NULL ? -1 : 0;
    if (overflow > 0) {
        field->type = NL_TYPE_UINT;
        field->uint_value = PyLong_AsUnsignedLongLong(value);
        if (field->uint_value != (uint64_t)-1 || PyErr_Occurred() == NULL)
            return 0;
        PyErr_Clear();
    }
    return take_huge(value, field, keep);
}

static int take_index(PyObject *value, nl_field *field, PyObject **keep)
{
    PyObject *number = PyNumber_Index(value);
    if (number == NULL)
        return -1;
    int result = take_int(number, field, keep);
    Py_DECREF(number);
    return result;
}

static int take_other(PyObject *value, nl_field *field, PyObject **keep)
{
    if (PyUnicode_Check(value)) {
        field->type = NL_TYPE_STRING;
        return nlpy_take_text(value, &field->string, keep);
    }
    if (PyLong_Check(value))
        return take_int(value, field, keep);
    if (PyFloat_Check(value)) {
        field->type = NL_TYPE_DOUBLE;
        field->double_value = PyFloat_AsDouble(value);
        return 0;
    }
    if (PyBytes_Check(value) || PyByteArray_Check(value) || PyMemoryView_Check(value)) {
        field->type = NL_TYPE_STRING;
        return own_bytes(PyBytes_FromObject(value), &field->string, keep);
    }
    return PyIndex_Check(value) ? take_index(value, field, keep) : take_as_text(value, field, keep);
}

int nlpy_take(PyObject *value, nl_field *field, PyObject **keep)
{
    PyTypeObject *type = Py_TYPE(value);
    if (type == &PyLong_Type)
        return take_int(value, field, keep);
    if (type == &PyUnicode_Type) {
        field->type = NL_TYPE_STRING;
        return nlpy_take_text(value, &field->string, keep);
    }
    if (type == &PyFloat_Type) {
        field->type = NL_TYPE_DOUBLE;
        field->double_value = PyFloat_AsDouble(value);
        return 0;
    }
    if (type == &PyBool_Type) {
        field->type = NL_TYPE_BOOL;
        field->bool_value = value == Py_True;
        return 0;
    }
    if (value == Py_None) {
        field->type = NL_TYPE_STRING;
        field->string = (nl_string){"", 0};
        return 0;
    }
    return take_other(value, field, keep);
}

PyObject *nlpy_give_text(nl_string text)
{
    if (text.data == NULL)
        Py_RETURN_NONE;
    return PyUnicode_DecodeUTF8(text.data, (Py_ssize_t)text.size, "surrogateescape");
}

static PyObject *give_number(const nl_field *field)
{
    int64_t number;
    double real;
    if (nl_field_int(field, &number))
        return PyLong_FromLongLong(number);
    if (nl_field_double(field, &real))
        return PyFloat_FromDouble(real);
    return nlpy_give_text(field->string);
}

PyObject *nlpy_give(const nl_field *field, bool numbers)
{
    switch (field->type) {
    case NL_TYPE_INT:
        return PyLong_FromLongLong(field->int_value);
    case NL_TYPE_UINT:
        return PyLong_FromUnsignedLongLong(field->uint_value);
    case NL_TYPE_DOUBLE:
        return PyFloat_FromDouble(field->double_value);
    case NL_TYPE_BOOL:
        return PyBool_FromLong(field->bool_value);
    default:
        return numbers ? give_number(field) : nlpy_give_text(field->string);
    }
}
