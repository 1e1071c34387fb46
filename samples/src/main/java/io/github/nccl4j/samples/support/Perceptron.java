package io.github.nccl4j.samples.support;

import java.util.Random;

/**
 * A neural network with one hidden layer that tells digits apart, in plain Java.
 *
 * <p>All its parameters lie in one array, as communication wants them: the weights of the hidden units, each followed by its bias, then
 * those of the outputs.
 */
public final class Perceptron {

    private final int hidden;
    private final int outputsBegin;
    private final int count;

    /**
     * What the network makes of pictures.
     *
     * @param loss the mean cross-entropy
     * @param accuracy the part that it gets right
     */
    public record Score(double loss, double accuracy) {}

    /**
     * Describes a network.
     *
     * @param hidden the number of hidden units
     */
    public Perceptron(int hidden) {
        this.hidden = hidden;
        outputsBegin = hidden * (Digits.PIXELS + 1);
        count = outputsBegin + Digits.CLASSES * (hidden + 1);
    }

    /**
     * Draws parameters to begin with.
     *
     * @param seed the same for the same parameters
     * @return the parameters
     */
    public float[] initialParameters(long seed) {
        Random random = new Random(seed);
        float[] parameters = new float[count];
        for (int i = 0; i < count; i++) {
            parameters[i] = (float) (random.nextGaussian() / Math.sqrt(i < outputsBegin ? Digits.PIXELS : hidden));
        }
        return parameters;
    }

    /**
     * The gradient of the loss, summed over some of the pictures.
     *
     * @param parameters where
     * @param digits the pictures
     * @param from the first
     * @param to behind the last
     * @return the gradient, by parameter
     */
    public float[] gradient(float[] parameters, Digits digits, int from, int to) {
        float[] gradient = new float[count];
        float[] units = new float[hidden];
        float[] errors = new float[Digits.CLASSES];
        for (int i = from; i < to; i++) {
            float[] picture = digits.picture(i);
            forward(parameters, picture, units, errors);
            errors[digits.label(i)] -= 1;
            for (int output = 0; output < Digits.CLASSES; output++) {
                addTo(gradient, outputsBegin + output * (hidden + 1), units, errors[output]);
            }
            for (int unit = 0; unit < hidden; unit++) {
                float error = 0;
                for (int output = 0; output < Digits.CLASSES; output++) {
                    error += errors[output] * parameters[outputsBegin + output * (hidden + 1) + unit];
                }
                addTo(gradient, unit * (Digits.PIXELS + 1), picture, error * (1 - units[unit] * units[unit]));
            }
        }
        return gradient;
    }

    /** Adds the gradient of a unit's weights and its bias. */
    private static void addTo(float[] gradient, int begin, float[] inputs, float error) {
        for (int i = 0; i < inputs.length; i++) {
            gradient[begin + i] += error * inputs[i];
        }
        gradient[begin + inputs.length] += error;
    }

    /** Fills in what the hidden units say, and the probabilities of the digits. */
    private void forward(float[] parameters, float[] picture, float[] units, float[] probabilities) {
        for (int unit = 0; unit < hidden; unit++) {
            units[unit] = (float) Math.tanh(weigh(parameters, unit * (Digits.PIXELS + 1), picture));
        }
        double sum = 0;
        for (int output = 0; output < Digits.CLASSES; output++) {
            probabilities[output] = (float) Math.exp(weigh(parameters, outputsBegin + output * (hidden + 1), units));
            sum += probabilities[output];
        }
        for (int output = 0; output < Digits.CLASSES; output++) {
            probabilities[output] /= (float) sum;
        }
    }

    private static float weigh(float[] parameters, int begin, float[] inputs) {
        float sum = parameters[begin + inputs.length];
        for (int i = 0; i < inputs.length; i++) {
            sum += parameters[begin + i] * inputs[i];
        }
        return sum;
    }

    /**
     * Tries the network.
     *
     * @param parameters its parameters
     * @param digits the pictures
     * @return how well it does
     */
    public Score score(float[] parameters, Digits digits) {
        float[] units = new float[hidden];
        float[] probabilities = new float[Digits.CLASSES];
        double loss = 0;
        int right = 0;
        for (int i = 0; i < digits.count(); i++) {
            forward(parameters, digits.picture(i), units, probabilities);
            float truth = probabilities[digits.label(i)];
            loss -= Math.log(truth);
            boolean best = true;
            for (float probability : probabilities) {
                best &= probability <= truth;
            }
            right += best ? 1 : 0;
        }
        return new Score(loss / digits.count(), (double) right / digits.count());
    }
}
