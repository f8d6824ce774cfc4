/** How often the console has rows counted and the database measured. */
export const SIZE_MEASURED_EVERY_MS = 30_000
/** Servers in the picture of the federation's health. */
export const MAX_SERVERS_AT_A_GLANCE = 400
/** Events in one picture of a room's graph. */
export const MAX_GRAPH_EVENTS = 200
/** Events that are counted to say how far a bridge lags behind. */
export const MAX_EVENTS_COUNTED = 10_000
