/* weft.h: weft's runtime for C and every language that calls C. No Python is needed.
 *
 * Programs are compiled by `weft compile model.pt -o model.weft` and loaded here:
 *
 *     weft_module *module;
 *     weft_tensor *x, *y;
 *     weft_module_load("model.weft", &module);
 *     weft_tensor_wrap(pixels, WEFT_FLOAT32, 4, sizes, NULL, NULL, NULL, &x);
 *     weft_module_forward(module, &x, 1, &y);
 *
 * Every function that can fail returns a weft_status: WEFT_OK is 0. After a failure the `out`
 * arguments are unchanged and weft_last_error() says what was expected, on the thread of the call.
 * What a function puts out belongs to the caller, who releases it. Handles may be used on any
 * thread; several threads may run one module at a time, as long as none changes its state.
 *
 * Null is no handle: giving it where a handle is expected is WEFT_VALUE_ERROR, and 0 or NULL from
 * functions without a status; releasing it does nothing.
 */
#ifndef WEFT_H
#define WEFT_H

#include <stddef.h>
#include <stdint.h>

#define WEFT_API_VERSION 5

#if defined(__GNUC__)
#define WEFT_API __attribute__((visibility("default")))
#else
#define WEFT_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_tensor weft_tensor;
typedef struct weft_value weft_value;
typedef struct weft_module weft_module;
typedef struct weft_optimizer weft_optimizer;
typedef struct weft_operator weft_operator;

/* A host may pass or return any int: C++ takes other numbers than those listed for undefined. */
#ifdef __cplusplus
#define WEFT_ENUM_OF_INT : int
#else
#define WEFT_ENUM_OF_INT
#endif

typedef enum weft_status WEFT_ENUM_OF_INT {
  WEFT_OK = 0,
  WEFT_RUNTIME_ERROR = 1,
  WEFT_VALUE_ERROR = 2,
  WEFT_TYPE_ERROR = 3,
  WEFT_INDEX_ERROR = 4,
  WEFT_KEY_ERROR = 5,
  WEFT_NOT_IMPLEMENTED = 6,
  WEFT_OUT_OF_MEMORY = 7,
  WEFT_CANCELLED = 8,
  WEFT_PROGRAM_ERROR = 9, /* an exception that the program raises, of another class */
  WEFT_INTERNAL_ERROR = 10
} weft_status;

typedef enum weft_dtype WEFT_ENUM_OF_INT {
  WEFT_BOOL = 0,
  WEFT_UINT8 = 1,
  WEFT_INT8 = 2,
  WEFT_INT16 = 3,
  WEFT_INT32 = 4,
  WEFT_INT64 = 5,
  WEFT_UINT16 = 6,
  WEFT_UINT32 = 7,
  WEFT_UINT64 = 8,
  WEFT_FLOAT16 = 9,
  WEFT_BFLOAT16 = 10,
  WEFT_FLOAT32 = 11,
  WEFT_FLOAT64 = 12,
  WEFT_COMPLEX64 = 13,
  WEFT_COMPLEX128 = 14,
  WEFT_FLOAT8_E4M3FN = 15,
  WEFT_FLOAT8_E5M2 = 16,
  WEFT_FLOAT8_E4M3FNUZ = 17,
  WEFT_FLOAT8_E5M2FNUZ = 18,
  WEFT_COMPLEX32 = 19
} weft_dtype;

/* ---- the library ---- */

/* The WEFT_API_VERSION that the library was built with. Functions are only ever added. */
WEFT_API int weft_api_version(void);
/* Why the last call of this thread failed, with the program's lines where it has them. Valid until
 * the thread's next failure; never NULL. */
WEFT_API const char* weft_last_error(void);
/* Threads that one operator uses, the caller's included: at least 1. */
WEFT_API weft_status weft_set_num_threads(int count);
WEFT_API int weft_num_threads(void);
/* The stream of random numbers of dropout and its kin. */
WEFT_API weft_status weft_manual_seed(uint64_t seed);
/* Whether calls of this thread record gradients: 1 unless set. Gives the old value. */
WEFT_API int weft_set_grad_enabled(int enabled);
/* Memory for tensors made from now on. `allocate` gives a block aligned to 64 bytes, or NULL.
 * NULL, NULL: weft's own allocator again. Blocks go back to the functions that gave them. */
WEFT_API weft_status weft_set_allocator(void* (*allocate)(size_t bytes, void* context),
                                        void (*release)(void* block, size_t bytes, void* context),
                                        void* context);
/* Whether modules that are loaded from now on may bring machine code: 1 unless set. Without it
 * their programs run on weft's own kernels, with equal results. A file that brings machine code is
 * to be trusted like a shared library; set 0 for files from others. */
WEFT_API void weft_allow_machine_code(int allowed);
/* Asks some twenty times a second, on each thread that runs a program, whether to end it: a call
 * that is ended returns WEFT_CANCELLED. NULL: nobody is asked. */
WEFT_API weft_status weft_set_cancellation(int (*is_cancelled)(void* context), void* context);

/* ---- tensors ---- */

/* A tensor over the caller's memory. `strides`: in elements, NULL for row-major. `release(context)`
 * runs once, when nothing uses the memory any longer; may be NULL. */
WEFT_API weft_status weft_tensor_wrap(void* data, weft_dtype dtype, int ndim, const int64_t* sizes,
                                      const int64_t* strides, void (*release)(void* context),
                                      void* context, weft_tensor** out);
/* A row-major tensor in memory of weft; the contents are undefined. */
WEFT_API weft_status weft_tensor_empty(weft_dtype dtype, int ndim, const int64_t* sizes,
                                       weft_tensor** out);
/* One more handle of the same tensor. */
WEFT_API weft_status weft_tensor_share(const weft_tensor* tensor, weft_tensor** out);
WEFT_API void weft_tensor_release(weft_tensor* tensor);

WEFT_API weft_dtype weft_tensor_dtype(const weft_tensor* tensor);
WEFT_API int weft_tensor_ndim(const weft_tensor* tensor);
/* ndim numbers each; valid as long as the handle. Strides count elements. */
WEFT_API const int64_t* weft_tensor_sizes(const weft_tensor* tensor);
WEFT_API const int64_t* weft_tensor_strides(const weft_tensor* tensor);
WEFT_API int64_t weft_tensor_numel(const weft_tensor* tensor);
/* "cpu", or "meta". Valid until the thread's next call of this function. */
WEFT_API const char* weft_tensor_device(const weft_tensor* tensor);
/* The first element; null unless the tensor is on the CPU. Valid as long as the handle, unless the
   tensor is resized. */
WEFT_API void* weft_tensor_data(const weft_tensor* tensor);

/* The tensor in row-major order: the same one where it is already. */
WEFT_API weft_status weft_tensor_contiguous(const weft_tensor* tensor, weft_tensor** out);
/* Copies the elements of `source`, converted and broadcast, without recording a gradient. */
WEFT_API weft_status weft_tensor_copy(weft_tensor* target, const weft_tensor* source);
/* The one element of the tensor as a number. */
WEFT_API weft_status weft_tensor_item(const weft_tensor* tensor, double* out);

WEFT_API weft_status weft_tensor_set_requires_grad(weft_tensor* tensor, int requires_grad);
WEFT_API int weft_tensor_requires_grad(const weft_tensor* tensor);
/* Adds the gradients of the tensor to those of the leaves it was made from. `gradient`: of its
 * shape; NULL for a tensor of one element. `flags`: a sum of weft_grad_flags. */
WEFT_API weft_status weft_tensor_backward(const weft_tensor* tensor, const weft_tensor* gradient,
                                          int flags);
/* The gradient; NULL where there is none. */
WEFT_API weft_status weft_tensor_grad(const weft_tensor* tensor, weft_tensor** out);
/* Sets the gradient, of the tensor's sizes and dtype; NULL: none. */
WEFT_API weft_status weft_tensor_set_grad(weft_tensor* tensor, const weft_tensor* gradient);
/* The tensor becomes one of the memory, sizes and dtype of `source`, under all of its handles; its
 * history stays. */
WEFT_API weft_status weft_tensor_set_data(weft_tensor* tensor, const weft_tensor* source);
/* Keeps the gradient of a tensor that is no leaf, when a backward pass comes to it. */
WEFT_API weft_status weft_tensor_retain_grad(weft_tensor* tensor);
/* Whether the tensor is not the result of an operator that records gradients. */
WEFT_API int weft_tensor_is_leaf(const weft_tensor* tensor);
/* Whether both are handles of one tensor. */
WEFT_API int weft_tensor_is_same(const weft_tensor* tensor, const weft_tensor* other);
/* Elements between the start of the memory and the first element. */
WEFT_API int64_t weft_tensor_offset(const weft_tensor* tensor);
/* All bytes of the memory that the tensor lies in, as a tensor of WEFT_UINT8 over the same memory.
 */
WEFT_API weft_status weft_tensor_storage(const weft_tensor* tensor, weft_tensor** out);
/* The tensor lies in the memory of `source` from now on, under all of its handles. `strides`: NULL
 * for row-major order; `offset` and strides count elements. */
WEFT_API weft_status weft_tensor_set_storage(weft_tensor* tensor, const weft_tensor* source,
                                             int64_t offset, int ndim, const int64_t* sizes,
                                             const int64_t* strides);
/* Writes a result to `out`, which gets its sizes and keeps its dtype, if that holds the result. */
WEFT_API weft_status weft_tensor_write(const weft_tensor* result, weft_tensor* out);

typedef enum weft_grad_flags WEFT_ENUM_OF_INT {
  WEFT_RETAIN_GRAPH = 1, /* another backward pass may follow */
  WEFT_CREATE_GRAPH = 2, /* gradients record gradients */
  WEFT_ALLOW_UNUSED = 4  /* an input that no output was made from has the gradient NULL */
} weft_grad_flags;
/* Puts out the gradients of outputs with respect to inputs, and adds to no tensor's own gradient.
 * `gradients`: those of the outputs; NULL, or NULL at a place, for outputs of one element.
 * `flags`: a sum of weft_grad_flags. */
WEFT_API weft_status weft_grad(const weft_tensor* const* outputs, size_t output_count,
                               const weft_tensor* const* gradients,
                               const weft_tensor* const* inputs, size_t input_count, int flags,
                               weft_tensor** out);

/* DLPack 1: struct DLManagedTensorVersioned, without copying. The consumer calls its deleter. */
struct DLManagedTensorVersioned;
WEFT_API weft_status weft_tensor_to_dlpack(const weft_tensor* tensor,
                                           struct DLManagedTensorVersioned** out);
/* Takes the tensor over: its deleter runs when nothing uses the memory any longer. */
WEFT_API weft_status weft_tensor_from_dlpack(struct DLManagedTensorVersioned* managed,
                                             weft_tensor** out);

/* ---- values: what programs take and give besides tensors ---- */

typedef enum weft_kind WEFT_ENUM_OF_INT {
  WEFT_KIND_NONE = 0,
  WEFT_KIND_BOOL = 1,
  WEFT_KIND_INT = 2,
  WEFT_KIND_FLOAT = 3,
  WEFT_KIND_COMPLEX = 4,
  WEFT_KIND_STRING = 5,
  WEFT_KIND_TENSOR = 6,
  WEFT_KIND_LIST = 7,
  WEFT_KIND_TUPLE = 8,
  WEFT_KIND_DICT = 9,
  WEFT_KIND_OTHER = 10 /* devices, dtypes, members of enumerations, objects, futures */
} weft_kind;

WEFT_API weft_status weft_value_none(weft_value** out);
WEFT_API weft_status weft_value_bool(int value, weft_value** out);
WEFT_API weft_status weft_value_int(int64_t value, weft_value** out);
WEFT_API weft_status weft_value_float(double value, weft_value** out);
WEFT_API weft_status weft_value_string(const char* utf8, size_t bytes, weft_value** out);
WEFT_API weft_status weft_value_tensor(const weft_tensor* tensor, weft_value** out);
WEFT_API weft_status weft_value_complex(double real, double imaginary, weft_value** out);
WEFT_API weft_status weft_value_dtype(weft_dtype dtype, weft_value** out);
/* Of a text such as "cpu". */
WEFT_API weft_status weft_value_device(const char* text, weft_value** out);
/* Lists of numbers. */
WEFT_API weft_status weft_value_ints(const int64_t* numbers, size_t count, weft_value** out);
WEFT_API weft_status weft_value_floats(const double* numbers, size_t count, weft_value** out);
/* Containers share their items with the handles given, which stay the caller's. */
WEFT_API weft_status weft_value_list(const weft_value* const* items, size_t count,
                                     weft_value** out);
WEFT_API weft_status weft_value_tuple(const weft_value* const* items, size_t count,
                                      weft_value** out);
WEFT_API weft_status weft_value_dict(const weft_value* const* keys, const weft_value* const* values,
                                     size_t count, weft_value** out);
/* One more handle of the same value. */
WEFT_API weft_status weft_value_share(const weft_value* value, weft_value** out);
WEFT_API void weft_value_release(weft_value* value);

WEFT_API weft_kind weft_value_kind(const weft_value* value);
/* WEFT_TYPE_ERROR where the value is of another kind; an int is also a float. */
WEFT_API weft_status weft_value_get_bool(const weft_value* value, int* out);
WEFT_API weft_status weft_value_get_int(const weft_value* value, int64_t* out);
WEFT_API weft_status weft_value_get_float(const weft_value* value, double* out);
WEFT_API weft_status weft_value_get_complex(const weft_value* value, double* real,
                                            double* imaginary);
WEFT_API weft_status weft_value_get_dtype(const weft_value* value, weft_dtype* out);
/* "cpu", or "meta:0". Valid until the thread's next call of this function. */
WEFT_API weft_status weft_value_get_device(const weft_value* value, const char** out);
/* Valid as long as the handle; ends with a 0 behind `bytes`, which may be NULL. */
WEFT_API weft_status weft_value_get_string(const weft_value* value, const char** out,
                                           size_t* bytes);
WEFT_API weft_status weft_value_get_tensor(const weft_value* value, weft_tensor** out);
/* Items of lists and tuples, entries of dicts. */
WEFT_API weft_status weft_value_length(const weft_value* value, size_t* out);
/* An item of a list or a tuple, the value of an entry of a dict. */
WEFT_API weft_status weft_value_item(const weft_value* value, size_t index, weft_value** out);
/* The key of an entry of a dict, in order of insertion. */
WEFT_API weft_status weft_value_key(const weft_value* value, size_t index, weft_value** out);
/* Attributes of objects; 0 for other values. The name is valid as long as the handle, and NULL
 * beyond the last. */
WEFT_API size_t weft_value_attribute_count(const weft_value* value);
WEFT_API const char* weft_value_attribute_name(const weft_value* value, size_t index);
/* WEFT_KEY_ERROR where there is none of the name. */
WEFT_API weft_status weft_value_attribute(const weft_value* value, const char* name,
                                          weft_value** out);
/* "float", "Tensor", "__torch__.Net". Valid until the thread's next call of this function. */
WEFT_API const char* weft_value_type(const weft_value* value);

/* ---- modules ---- */

/* Maps a compiled file: pages are read when they are used, and shared by processes. The file may be
 * removed meanwhile, but not cut short. */
WEFT_API weft_status weft_module_load(const char* path, weft_module** out);
/* The same from memory, which is copied. */
WEFT_API weft_status weft_module_load_memory(const void* data, size_t bytes, weft_module** out);
WEFT_API void weft_module_release(weft_module* module);

WEFT_API size_t weft_module_method_count(const weft_module* module);
/* NULL beyond the last; valid as long as the handle. */
WEFT_API const char* weft_module_method_name(const weft_module* module, size_t index);
/* Runs a method. Arguments with defaults may be left out at the end. */
WEFT_API weft_status weft_module_call(const weft_module* module, const char* method,
                                      const weft_value* const* args, size_t count,
                                      weft_value** out);
/* Runs forward on tensors; WEFT_TYPE_ERROR where it gives something else than one tensor. */
WEFT_API weft_status weft_module_forward(const weft_module* module,
                                         const weft_tensor* const* inputs, size_t count,
                                         weft_tensor** out);

/* Sets training mode (1) or evaluation mode (0), which dropout and batch norm ask for. */
WEFT_API weft_status weft_module_train(weft_module* module, int mode);
WEFT_API size_t weft_module_parameter_count(const weft_module* module);
/* The name, valid as long as the handle, and the tensor; either may be NULL. */
WEFT_API weft_status weft_module_parameter(const weft_module* module, size_t index,
                                           const char** name, weft_tensor** out);
WEFT_API size_t weft_module_buffer_count(const weft_module* module);
WEFT_API weft_status weft_module_buffer(const weft_module* module, size_t index, const char** name,
                                        weft_tensor** out);
/* An attribute of the module, or of one below it: "r_max", "layers.0.scale". Modules are objects.
 * Methods of the file are no attributes. WEFT_KEY_ERROR where there is none of the name; "" is the
 * module itself. */
WEFT_API weft_status weft_module_attribute(const weft_module* module, const char* path,
                                           weft_value** out);
/* The arguments of a method behind self: how many there are, and the name of each with its type:
 * "x: Tensor". Valid until the thread's next call of this function; NULL beyond the last. */
WEFT_API const char* weft_module_method_argument(const weft_module* module, const char* method,
                                                 size_t index);
/* The bytes of a record of the file, as "extra/config.json"; valid as long as the handle.
 * WEFT_KEY_ERROR where there is none of the name. */
WEFT_API weft_status weft_module_record(const weft_module* module, const char* name,
                                        const void** data, size_t* bytes);
/* Parameters and buffers as a safetensors file, for weft.load_file and other readers. */
WEFT_API weft_status weft_module_save_state(const weft_module* module, const char* path);
/* Reads a safetensors file into parameters and buffers: exactly these names and sizes, any dtypes.
 * WEFT_KEY_ERROR for other names, WEFT_VALUE_ERROR for other sizes and damaged files; the module is
 * as it was then. */
WEFT_API weft_status weft_module_load_state(weft_module* module, const char* path);

/* ---- operators of the library ---- */

/* The operator of a name "aten::add.Tensor", which is the library's; WEFT_KEY_ERROR where there is
 * none. */
WEFT_API weft_status weft_find_operator(const char* name, const weft_operator** out);
/* "add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor" */
WEFT_API const char* weft_operator_schema(const weft_operator* op);
/* Schemas of all operators, one after the other; NULL beyond the last. */
WEFT_API const char* weft_operator_schema_at(size_t index);
/* Calls the operator. Arguments stand as in the schema; those with defaults may be left out at the
 * end, and be NULL elsewhere. An int is a float, too, and it, or a list of one, stands for a list
 * of a given length. Puts out the result, a tuple of several, none (weft_value_none) where the
 * schema gives none. */
WEFT_API weft_status weft_call_operator(const weft_operator* op, const weft_value* const* args,
                                        size_t count, weft_value** out);

/* ---- operators of the host ---- */

/* Computes an operator on `count` values, which are the library's and valid during the call. Puts
 * out a handle of the result, which the library takes over: a tuple of several; NULL where the
 * schema gives none. For WEFT_OK only; another status ends the program with it, and with the text
 * that weft_fail, or a call of this library that failed, has left. May run on several threads at a
 * time, and records no gradients. */
typedef weft_status (*weft_operator_call)(const weft_value* const* args, size_t count,
                                          weft_value** out, void* context);
/* Registers the operator of a schema "my::scale(Tensor x, float by) -> Tensor", which programs call
 * as ops.my.scale: modules find it at each call, whenever they were loaded. Types: Tensor, int,
 * float, bool, complex, str, Scalar, Device, ScalarType, lists of these (Tensor[]) and optional
 * ones (Tensor?). Tensors are to be read, not written to.
 *
 * `gradient` may be NULL: then backward through the operator fails. It gets the arguments, the
 * results and the gradients of the results, and puts out a tuple with a gradient for each argument:
 * none (weft_value_none) or what is of its sizes.
 * `release(context)` runs once, when the operator is gone; may be NULL. It does not run where this
 * call fails: WEFT_VALUE_ERROR for a schema that is none, WEFT_RUNTIME_ERROR for a name that is
 * registered already. */
WEFT_API weft_status weft_register_operator(const char* schema, weft_operator_call call,
                                            weft_operator_call gradient,
                                            void (*release)(void* context), void* context);
/* The same for an operator that records gradients itself: `call` runs in the caller's mode of
 * gradients (weft_set_grad_enabled), and results keep the history that they come with, from
 * operators of the library and from weft_record_function. Here the schema may say what is written
 * to: "my::scale_(Tensor(a!) x, float by) -> Tensor(a!)". */
WEFT_API weft_status weft_register_composed_operator(const char* schema, weft_operator_call call,
                                                     void (*release)(void* context), void* context);
/* Forgets the operator of a name "my::scale"; WEFT_KEY_ERROR where there is none. Calls under way
 * end as they would have; its context is released after them. */
WEFT_API weft_status weft_unregister_operator(const char* name);
/* Computes the gradients of inputs. `gradients`: one for each output, NULL where it has none;
 * `saved`: what the function had; `wanted`: whether the gradient of each input is asked for. Puts
 * out a gradient for each input, or leaves the NULL that is there. */
typedef weft_status (*weft_backward_call)(const weft_tensor* const* gradients,
                                          const weft_tensor* const* saved, const int* wanted,
                                          weft_tensor** out, void* context);
typedef enum weft_output_flags WEFT_ENUM_OF_INT {
  WEFT_OUTPUT_WRITTEN = 1, /* an input as well, which the function wrote to */
  WEFT_OUTPUT_CONSTANT = 2 /* has no gradient */
} weft_output_flags;
/* A call of a function that has its own gradient. Tensors may be NULL where there is none. */
typedef struct weft_function {
  const char* name; /* in messages: "ScaleBackward" */
  const weft_tensor* const* inputs;
  size_t input_count;
  const weft_tensor* const* outputs;
  size_t output_count;
  const int* output_flags; /* a sum of weft_output_flags for each output; NULL: 0 */
  const weft_tensor* const* saved;
  size_t saved_count;
  int fills_gradients; /* zeros stand for gradients of outputs that have none */
  weft_backward_call backward;
  void (*release)(void* context); /* once, when nothing needs the gradient any longer; or NULL */
  void* context;
} weft_function;
/* Makes the function the history of its outputs, whatever the mode of gradients. Puts out each
 * output with it: one that is an input, a view, or has a history already is a new tensor over its
 * elements. Where this call fails `release` does not run. */
WEFT_API weft_status weft_record_function(const weft_function* function, weft_tensor** out);
/* Leaves a text for weft_last_error and gives the status back:
 * `return weft_fail(WEFT_VALUE_ERROR, "expected two dims");`. */
WEFT_API weft_status weft_fail(weft_status status, const char* text);

/* ---- training ---- */

/* Optimizers of all parameters of a module, as weft.optim.SGD and weft.optim.Adam. */
WEFT_API weft_status weft_sgd(const weft_module* module, double lr, double momentum,
                              double weight_decay, weft_optimizer** out);
WEFT_API weft_status weft_adam(const weft_module* module, double lr, double beta1, double beta2,
                               double eps, double weight_decay, weft_optimizer** out);
WEFT_API weft_status weft_optimizer_step(weft_optimizer* optimizer);
WEFT_API weft_status weft_optimizer_zero_grad(weft_optimizer* optimizer);
WEFT_API weft_status weft_optimizer_set_lr(weft_optimizer* optimizer, double lr);
WEFT_API void weft_optimizer_release(weft_optimizer* optimizer);

#ifdef __cplusplus
} /* extern "C" */
#endif
#endif /* WEFT_H */
