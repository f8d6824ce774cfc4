/** How often the console has rows counted and the database measured. */
export const SIZE_MEASURED_EVERY_MS = 30_000
/** Servers in the picture of the federation's health. */
export const MAX_SERVERS_AT_A_GLANCE = 400
/** Events in one picture of a room's graph. */
export const MAX_GRAPH_EVENTS = 200
/** Events that are counted to say how far a bridge lags behind. */
export const MAX_EVENTS_COUNTED = 10_000
/** The history that the overview begins with: a look so often, and so many of them. */
export const HISTORY_EVERY_MS = 10_000
export const MAX_HISTORY = 360
/** How often the console has the servers counted that lack something. */
export const LAGGING_COUNTED_EVERY_MS = 4_000
