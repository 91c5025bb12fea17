/* Finds operators by the names that it is given, and calls some: a host without libtorch. */
#include <stdio.h>
#include <weft.h>

static weft_value* boxed(int64_t count) {
  weft_tensor* tensor = NULL;
  weft_value* value = NULL;
  const int64_t sizes[] = {1, 1, count};
  int64_t i;
  weft_tensor_empty(WEFT_FLOAT32, 3, sizes, &tensor);
  for (i = 0; i < count; ++i) ((float*)weft_tensor_data(tensor))[i] = (float)i;
  weft_value_tensor(tensor, &value);
  weft_tensor_release(tensor);
  return value;
}

static void call(const char* title, const char* name, const weft_value* const* args, size_t count) {
  const weft_operator* op = NULL;
  weft_value* result = NULL;
  weft_tensor* tensor = NULL;
  if (weft_find_operator(name, &op) != WEFT_OK ||
      weft_call_operator(op, args, count, &result) != WEFT_OK ||
      weft_value_get_tensor(result, &tensor) != WEFT_OK) {
    printf("%s\n", weft_last_error());
    return;
  }
  printf("%s: %d values\n", title, (int)weft_tensor_numel(tensor));
  weft_tensor_release(tensor);
  weft_value_release(result);
}

int main(int count, char** names) {
  const weft_operator* op = NULL;
  weft_value *x = boxed(3), *line = boxed(6), *none = NULL, *two = NULL;
  const weft_value* args[4] = {NULL, NULL, NULL, NULL};
  size_t all = 0;
  int i, found = 0;
  weft_value_none(&none);
  weft_value_int(12, &two);
  args[0] = x;
  call("relu", "aten::relu", args, 1);
  for (i = 1; i < count; ++i) {
    const weft_status status = weft_find_operator(names[i], &op);
    printf("%s: %s\n", names[i], status ? weft_last_error() : weft_operator_schema(op));
    if (status) return 0;
  }
  args[0] = line;
  args[1] = two; /* a number for a list of one */
  call("upsample of one number", "aten::upsample_nearest1d", args, 2);
  args[1] = none;
  call("", "aten::clip", args, 4);
  call("", "aten::mish", NULL, 0);
  args[0] = two;
  call("", "aten::mish", args, 1);
  while (weft_operator_schema_at(all) != NULL) {
    if (count > 1 && weft_operator_schema_at(all) == weft_operator_schema(op)) ++found;
    ++all;
  }
  printf("listed %d time\n", found);
  weft_value_release(x);
  weft_value_release(line);
  weft_value_release(none);
  weft_value_release(two);
  return 0;
}
