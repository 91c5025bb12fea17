/* Runs a compiled model in plain C:
 *
 *     cc inference.c $(python -m weft --flags) -o inference && ./inference model.weft
 */
#include <stdio.h>
#include <weft.h>

static int failed(weft_status status) {
  if (status != WEFT_OK) fprintf(stderr, "%s\n", weft_last_error());
  return status != WEFT_OK;
}

int main(int argc, char **argv) {
  float row[4] = {0.5f, -1.0f, 2.0f, 0.25f};
  const int64_t sizes[2] = {1, 4};
  weft_module *model = NULL;
  weft_tensor *x = NULL, *y = NULL, *whole = NULL;
  int status = 1;
  int64_t i;
  if (argc != 2) return fputs("usage: inference model.weft\n", stderr), 2;
  if (!failed(weft_module_load(argv[1], &model)) &&
      !failed(weft_tensor_wrap(row, WEFT_FLOAT32, 2, sizes, NULL, NULL, NULL, &x)) &&
      !failed(weft_module_forward(model, (const weft_tensor *const *)&x, 1, &y)) &&
      !failed(weft_tensor_contiguous(y, &whole))) {
    const float *values = weft_tensor_data(whole);
    for (i = 0; i < weft_tensor_numel(whole); ++i) printf("%.9g\n", values[i]);
    status = 0;
  }
  weft_tensor_release(whole);
  weft_tensor_release(y);
  weft_tensor_release(x);
  weft_module_release(model);
  return status;
}
