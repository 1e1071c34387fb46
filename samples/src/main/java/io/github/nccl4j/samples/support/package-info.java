/**
 * What the samples need besides nccl4j: who a rank is, the exchange of the unique id, test data and their checks.
 *
 * <p>This is scaffolding of the samples, not an API.
 */
package io.github.nccl4j.samples.support;
