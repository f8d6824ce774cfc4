/** Bytes of a filter that is stored. Clients' filters have a few hundred; one that names a thousand rooms has about as many. */
export const MAX_FILTER_BYTES = 64 * 1024
