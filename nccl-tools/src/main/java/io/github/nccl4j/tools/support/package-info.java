/**
 * Support for the samples: choice of the engine, test data and their checks. Not an API.
 */
package io.github.nccl4j.tools.support;
