/** What may be stopped for a while, and for good. */
export interface PauseSwitch {
  /** Whether it must not go on just now. */
  isStopped(): boolean
  readonly isPaused: boolean
  set(isPaused: boolean): void
}

/** @param resumed called when a pause ends: what was cut short is to be done again */
export function createPauseSwitch(closing: AbortSignal, resumed: () => void): PauseSwitch {
  let paused = false
  return {
    isStopped: () => paused || closing.aborted,
    get isPaused() {
      return paused
    },
    set(isPaused) {
      const isEnd = paused && !isPaused
      paused = isPaused
      if (isEnd) resumed()
    },
  }
}
