/*
 * Runs a compiled model in Java, over the functions of inference_jni.cpp:
 *
 *     javac -h . Inference.java
 *     c++ -std=c++17 -shared -fPIC inference_jni.cpp -I. -I$JAVA_HOME/include -I$JAVA_HOME/include/linux \
 *         $(python -m weft --flags) -o libinference.so
 *     java -Djava.library.path=. Inference model.weft
 */
public final class Inference implements AutoCloseable {
    static {
        System.loadLibrary("inference");
    }

    private final long model;

    public Inference(String path) {
        model = load(path);
    }

    /** One row through the model. */
    public float[] forward(float[] row) {
        return forward(model, row);
    }

    @Override
    public void close() {
        release(model);
    }

    private static native long load(String path);

    private static native float[] forward(long model, float[] row);

    private static native void release(long model);

    public static void main(String[] args) {
        try (Inference inference = new Inference(args[0])) {
            for (float value : inference.forward(new float[] {0.5f, -1.0f, 2.0f, 0.25f})) {
                System.out.println(value);
            }
        }
    }
}
