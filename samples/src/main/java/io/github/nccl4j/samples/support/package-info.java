/**
 * What the samples need besides nccl4j: the choice of the engine, test data and their checks.
 *
 * <p>This is scaffolding of the samples, not an API.
 */
package io.github.nccl4j.samples.support;
