import type { Logger } from 'pino'
import type { MissedDeviceLists } from '../domain/keys/missed-device-lists.ts'
import { startDueWork } from './due-work.ts'

/** Has the device lists of servers fetched again that policy lists banned for a while. */
export const startDeviceListRenewer = (missed: MissedDeviceLists, log: Logger) =>
  startDueWork({
    everyMs: 60_000,
    failure: 'device lists of servers that were banned are not renewed yet; it will be tried again',
    log,
    onWake: missed.onWake,
    run: missed.runAll,
  })
