/* Gives a program an operator of its own, in plain C:
 *
 *     weft compile model.pt -o model.weft --operator 'my::scale(Tensor x, float by) -> Tensor'
 *     cc operator.c $(python -m weft --flags) -o operator && ./operator model.weft
 *
 * The program calls it as ops.my.scale, in PyTorch torch.ops.my.scale.
 */
#include <stdio.h>
#include <weft.h>

static int failed(weft_status status) {
  if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error());
  return status != WEFT_OK;
}

/* x * by of float32; what else it is given ends the program. */
static weft_status scaled(const weft_tensor *x, double by, weft_value **out) {
  weft_tensor *rows = NULL, *made = NULL;
  weft_status status;
  int64_t i;
  if (weft_tensor_dtype(x) != WEFT_FLOAT32)
    return weft_fail(WEFT_TYPE_ERROR, "expected a tensor of float32, got another dtype");
  status = weft_tensor_contiguous(x, &rows);
  if (status == WEFT_OK)
    status = weft_tensor_empty(WEFT_FLOAT32, weft_tensor_ndim(x), weft_tensor_sizes(x), &made);
  if (status == WEFT_OK) {
    const float *from = weft_tensor_data(rows);
    float *to = weft_tensor_data(made);
    for (i = 0; i < weft_tensor_numel(x); ++i) to[i] = from[i] * (float)by;
    status = weft_value_tensor(made, out);
  }
  weft_tensor_release(rows);
  weft_tensor_release(made);
  return status;
}

/* `count` is what the schema says: x, by. */
static weft_status scale(const weft_value *const *args, size_t count, weft_value **out,
                         void *calls) {
  weft_tensor *x = NULL;
  double by = 0;
  weft_status status = weft_value_get_tensor(args[0], &x);
  (void)count;
  ++*(int *)calls;
  if (status == WEFT_OK) status = weft_value_get_float(args[1], &by);
  if (status == WEFT_OK) status = scaled(x, by, out);
  weft_tensor_release(x);
  return status;
}

int main(int argc, char **argv) {
  float row[4] = {0.5f, -1.0f, 2.0f, 0.25f};
  const int64_t sizes[2] = {1, 4};
  weft_module *model = NULL;
  weft_tensor *x = NULL, *y = NULL, *whole = NULL;
  int status = 1, calls = 0;
  int64_t i;
  if (argc != 2) return fputs("usage: operator model.weft\n", stderr), 2;
  if (!failed(weft_register_operator("my::scale(Tensor x, float by) -> Tensor", scale, NULL, NULL,
                                     &calls)) &&
      !failed(weft_module_load(argv[1], &model)) &&
      !failed(weft_tensor_wrap(row, WEFT_FLOAT32, 2, sizes, NULL, NULL, NULL, &x)) &&
      !failed(weft_module_forward(model, (const weft_tensor *const *)&x, 1, &y)) &&
      !failed(weft_tensor_contiguous(y, &whole))) {
    const float *values = weft_tensor_data(whole);
    for (i = 0; i < weft_tensor_numel(whole); ++i) printf("%.9g\n", values[i]);
    printf("%d calls\n", calls);
    status = 0;
  }
  weft_tensor_release(whole);
  weft_tensor_release(y);
  weft_tensor_release(x);
  weft_module_release(model);
  return status;
}
