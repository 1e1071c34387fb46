/** Tests of who a rank is, and of how ranks meet. */
package io.github.nccl4j.tests.launch;
