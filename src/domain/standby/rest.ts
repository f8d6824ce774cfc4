import type { Reader } from '../../store/db/db.ts'
import { STANDBY_LOOK_MS } from '../limits/cluster.ts'

/** While the database does not answer a node that stands by, that one passes everything on: the node that serves may reach it. */
export interface StandbyRest {
  isOn(): boolean
  /** The database did not answer. Until it answers a small question again, nothing else is asked of it. */
  begin(): void
  close(): void
}

/** @param everyMs how long before each question; shorter in tests */
export function createStandbyRest(db: Reader, everyMs = STANDBY_LOOK_MS): StandbyRest {
  let isOn = false
  let isClosed = false
  let timer: NodeJS.Timeout | undefined

  function lookLater(): void {
    if (!isClosed) timer = setTimeout(look, everyMs).unref()
  }

  function look(): void {
    db.query('SELECT 1 AS one').then(() => {
      isOn = false
    }, lookLater)
  }

  return {
    isOn: () => isOn,
    begin() {
      if (isOn) return
      isOn = true
      lookLater()
    },
    close() {
      isClosed = true
      clearTimeout(timer)
    },
  }
}
