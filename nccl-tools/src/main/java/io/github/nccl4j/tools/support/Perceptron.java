package io.github.nccl4j.tools.support;

import java.util.Random;

/**
 * A neural network with one hidden layer that classifies digits, in plain Java. Immutable; callers pass the parameters.
 *
 * <p>All parameters are in one array, so that one collective can transfer them: for each hidden unit its weights and its bias,
 * then the same for each output.
 */
public final class Perceptron {

    private final int hidden;
    private final int outputsBegin;
    private final int count;

    /**
     * The quality of a classification.
     *
     * @param loss the mean cross-entropy
     * @param accuracy the fraction of correct answers, 0 to 1
     */
    public record Score(double loss, double accuracy) {}

    /**
     * Creates a network.
     *
     * @param hidden the number of hidden units
     */
    public Perceptron(int hidden) {
        this.hidden = hidden;
        outputsBegin = hidden * (Digits.PIXELS + 1);
        count = outputsBegin + Digits.CLASSES * (hidden + 1);
    }

    /**
     * Draws random initial parameters.
     *
     * @param seed the seed; the same seed gives the same parameters
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
     * Computes the gradient of the loss, summed over a range of pictures.
     *
     * @param parameters the parameters
     * @param digits the pictures
     * @param from the index of the first picture
     * @param to the index after the last picture
     * @return the gradient, in the order of the parameters
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

    /** Computes the outputs of the hidden units and the probabilities of the digits. */
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
     * Evaluates the network.
     *
     * @param parameters the parameters
     * @param digits the pictures
     * @return the loss and the accuracy over all pictures
     */
    public Score score(float[] parameters, Digits digits) {
        float[] units = new float[hidden];
        float[] probabilities = new float[Digits.CLASSES];
        double loss = 0;
        int correctCount = 0;
        for (int i = 0; i < digits.count(); i++) {
            forward(parameters, digits.picture(i), units, probabilities);
            float truth = probabilities[digits.label(i)];
            loss -= Math.log(truth);
            boolean correct = true;
            for (float probability : probabilities) {
                correct &= probability <= truth;
            }
            correctCount += correct ? 1 : 0;
        }
        return new Score(loss / digits.count(), (double) correctCount / digits.count());
    }
}
