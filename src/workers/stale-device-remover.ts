import type { Logger } from 'pino'
import type { StaleDevices } from '../domain/accounts/upkeep/stale-devices.ts'
import { startDueWork } from './due-work.ts'

/** Removes devices that nobody uses any more. */
export const startStaleDeviceRemover = (devices: StaleDevices, log: Logger) =>
  startDueWork({
    everyMs: 600_000,
    failure: 'devices that nobody uses could not be removed; it will be tried again',
    log,
    onWake: () => {},
    run: devices.removeAll,
  })
