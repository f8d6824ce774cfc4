import type { Logger } from 'pino'
import type { Guests } from '../domain/rooms/act/guests.ts'
import { startDueWork } from './due-work.ts'

export const startGuestRemover = (guests: Guests, log: Logger) =>
  startDueWork({
    everyMs: 10_000,
    failure: 'guests could not be removed from a room that no longer admits them; it will be tried again',
    log,
    onWake: guests.onWake,
    run: guests.putOut,
  })
