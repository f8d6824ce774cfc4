/** Bytes of the messages that wait for a device. More of them remove the oldest of the busiest sender, as too many do. */
export const MAX_TO_DEVICE_BYTES_WAITING = 64 * 1024 * 1024
