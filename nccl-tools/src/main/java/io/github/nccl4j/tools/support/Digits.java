package io.github.nccl4j.tools.support;

import java.util.Random;

/**
 * Training data: noisy pictures of seven-segment digits at random positions in a small frame, with their labels.
 *
 * <p>The same seed gives the same pictures, so that every rank can generate them without a file.
 */
public final class Digits {

    /** The number of different digits. */
    public static final int CLASSES = 10;

    private static final int WIDTH = 6;
    private static final int HEIGHT = 9;

    /** The number of pixels of a picture. */
    public static final int PIXELS = WIDTH * HEIGHT;

    private static final int GLYPH_WIDTH = 4;
    private static final int GLYPH_HEIGHT = 7;
    private static final double NOISE = 0.3;

    /** The lit segments of each digit: top, upper left, upper right, middle, lower left, lower right, bottom. */
    private static final String[] SEGMENTS = {
        "1110111", "0010010", "1011101", "1011011", "0111010", "1101011", "1101111", "1010010", "1111111", "1111011"
    };

    private final float[][] pictures;
    private final int[] labels;

    private Digits(float[][] pictures, int[] labels) {
        this.pictures = pictures;
        this.labels = labels;
    }

    /**
     * Generates pictures with equally frequent digits.
     *
     * @param count the number of pictures
     * @param seed the seed of the random positions and noise
     * @return the pictures
     */
    public static Digits generate(int count, long seed) {
        Random random = new Random(seed);
        float[][] pictures = new float[count][];
        int[] labels = new int[count];
        for (int i = 0; i < count; i++) {
            labels[i] = i % CLASSES;
            pictures[i] = picture(labels[i], random);
        }
        return new Digits(pictures, labels);
    }

    private static float[] picture(int digit, Random random) {
        int left = random.nextInt(WIDTH - GLYPH_WIDTH + 1);
        int top = random.nextInt(HEIGHT - GLYPH_HEIGHT + 1);
        float[] pixels = new float[PIXELS];
        for (int y = 0; y < HEIGHT; y++) {
            for (int x = 0; x < WIDTH; x++) {
                boolean lit = isLit(SEGMENTS[digit], x - left, y - top);
                pixels[y * WIDTH + x] = (float) ((lit ? 1 : 0) + NOISE * random.nextGaussian());
            }
        }
        return pixels;
    }

    private static boolean isLit(String segments, int x, int y) {
        if (x < 0 || x >= GLYPH_WIDTH || y < 0 || y >= GLYPH_HEIGHT) {
            return false;
        }
        int middle = GLYPH_HEIGHT / 2;
        return y == 0 && isOn(segments, 0)
                || x == 0 && y <= middle && isOn(segments, 1)
                || x == GLYPH_WIDTH - 1 && y <= middle && isOn(segments, 2)
                || y == middle && isOn(segments, 3)
                || x == 0 && y >= middle && isOn(segments, 4)
                || x == GLYPH_WIDTH - 1 && y >= middle && isOn(segments, 5)
                || y == GLYPH_HEIGHT - 1 && isOn(segments, 6);
    }

    private static boolean isOn(String segments, int segment) {
        return segments.charAt(segment) == '1';
    }

    /** {@return the number of pictures} */
    public int count() {
        return labels.length;
    }

    /** The brightness of the pixels of a picture. */
    float[] picture(int index) {
        return pictures[index];
    }

    /** The digit that a picture shows. */
    int label(int index) {
        return labels[index];
    }
}
