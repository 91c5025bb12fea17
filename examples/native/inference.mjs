// Runs a compiled model in Node:
//
//     npm install koffi
//     node inference.mjs "$(python -m weft --library)/libweft.so" model.weft
import koffi from "koffi";

const [library, path] = process.argv.slice(2);
const weft = koffi.load(library);
koffi.opaque("weft_tensor");
koffi.opaque("weft_module");
const lastError = weft.func("const char *weft_last_error()");
const load = weft.func("int weft_module_load(const char *path, _Out_ weft_module **out)");
const wrap = weft.func(
  "int weft_tensor_wrap(void *data, int dtype, int ndim, const int64_t *sizes, void *strides, " +
    "void *release, void *context, _Out_ weft_tensor **out)",
);
const forward = weft.func(
  "int weft_module_forward(weft_module *module, weft_tensor **inputs, size_t count, " +
    "_Out_ weft_tensor **out)",
);
const contiguous = weft.func("int weft_tensor_contiguous(weft_tensor *x, _Out_ weft_tensor **out)");
const numel = weft.func("int64_t weft_tensor_numel(weft_tensor *tensor)");
const data = weft.func("void *weft_tensor_data(weft_tensor *tensor)");
const releaseTensor = weft.func("void weft_tensor_release(weft_tensor *tensor)");
const releaseModule = weft.func("void weft_module_release(weft_module *module)");
const WEFT_FLOAT32 = 11;

// Calls a function whose last argument is a handle that it puts out.
function made(call, ...args) {
  const out = [null];
  if (call(...args, out) !== 0) throw new Error(lastError());
  return out[0];
}

const row = new Float32Array([0.5, -1.0, 2.0, 0.25]);
const model = made(load, path);
const x = made(wrap, row, WEFT_FLOAT32, 2, [1, 4], null, null, null);
const y = made(forward, model, [x], 1);
const whole = made(contiguous, y);
for (const value of koffi.decode(data(whole), "float", Number(numel(whole)))) console.log(value);
[whole, y, x].forEach(releaseTensor);
releaseModule(model);
