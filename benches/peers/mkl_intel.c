/* Loaded before MKL, it has MKL use all that the processor has, as on Intel's. */
int mkl_serv_intel_cpu_true(void) { return 1; }
