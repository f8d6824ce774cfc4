import type { Logger } from 'pino'
import type { ListAcls } from '../domain/moderation/list-acls.ts'
import { startDueWork } from './due-work.ts'

/** Keeps the server ACLs of rooms in step with policy lists. */
export const startListAclKeeper = (acls: ListAcls, log: Logger) =>
  startDueWork({
    everyMs: 60_000,
    failure: 'the server ACLs of rooms are not in step with policy lists yet; it will be tried again',
    log,
    onWake: acls.onWake,
    run: acls.runAll,
  })
