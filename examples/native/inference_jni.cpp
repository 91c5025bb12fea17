// The native functions of Inference.java.
#include <weft.hpp>

#include "Inference.h"

namespace {

const weft::Module& model_of(jlong handle) {
  return *reinterpret_cast<const weft::Module*>(handle);
}

// What `make` gives; a failure becomes a RuntimeException of Java.
template <class Make>
auto guarded(JNIEnv* env, Make&& make) -> decltype(make()) {
  try {
    return make();
  } catch (const std::exception& error) {
    env->ThrowNew(env->FindClass("java/lang/RuntimeException"), error.what());
    return {};
  }
}

}  // namespace

jlong Java_Inference_load(JNIEnv* env, jclass, jstring path) {
  const char* text = env->GetStringUTFChars(path, nullptr);
  if (text == nullptr) return 0;
  const jlong handle =
      guarded(env, [&] { return reinterpret_cast<jlong>(new weft::Module(text)); });
  env->ReleaseStringUTFChars(path, text);
  return handle;
}

jfloatArray Java_Inference_forward(JNIEnv* env, jclass, jlong model, jfloatArray row) {
  return guarded(env, [&]() -> jfloatArray {
    const weft::NoGrad no_grad;
    const jsize count = env->GetArrayLength(row);
    std::vector<float> input(static_cast<size_t>(count));
    env->GetFloatArrayRegion(row, 0, count, input.data());
    const weft::Tensor x = weft::Tensor::over(input.data(), {1, count});
    const std::vector<float> values = model_of(model)(x).to_vector<float>();
    const auto length = static_cast<jsize>(values.size());
    jfloatArray result = env->NewFloatArray(length);
    if (result != nullptr) env->SetFloatArrayRegion(result, 0, length, values.data());
    return result;
  });
}

void Java_Inference_release(JNIEnv*, jclass, jlong model) { delete &model_of(model); }
