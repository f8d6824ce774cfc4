/** Limits on rendezvous sessions, through which two devices meet to sign one of them in. */

/** Bytes of what lies in a session (MSC4108, MSC4388). */
export const MAX_RENDEZVOUS_BYTES = 4096
/** How long a session lives from its beginning. */
export const RENDEZVOUS_MS = 180_000
/** Sessions of one address, and in all. One more in all ends the oldest of the network that has most. */
export const MAX_RENDEZVOUS_PER_ADDRESS = 10
export const MAX_RENDEZVOUS = 500
