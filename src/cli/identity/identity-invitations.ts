import type { Config } from '../../config/schema.ts'
import { createAudit } from '../../domain/admin/audit.ts'
import { COMMAND_LINE } from '../../domain/admin/operators.ts'
import {
  createInvitationDesk,
  type InvitationDesk,
  type PendingInvitation,
} from '../../domain/identity/invitation-desk.ts'
import { type Host, UsageError } from '../command.ts'
import { withDatabase } from '../database.ts'
import { minute, table } from '../table.ts'

/**
 * Lists pending invitations, or cancels one. It works in the database itself, because a server with only the identity role has
 * no admin accounts.
 */
export async function invitations(
  host: Host,
  config: Config,
  { cancel, json }: { readonly cancel?: string; readonly json?: boolean },
): Promise<void> {
  if (cancel !== undefined && !/^\d{1,15}$/.test(cancel)) throw new UsageError('--cancel takes the id of the list')
  const text = await withDatabase(host, config, async (db) => {
    const desk = createInvitationDesk({ db, clock: Date })
    const act = cancel === undefined ? 'identity invitations' : 'identity invitations --cancel'
    const audit = createAudit({ db, clock: Date })
    return audit.record({ actor: COMMAND_LINE.name, act, target: cancel ?? '' }, async () => {
      if (cancel === undefined) return shown(await all(desk), json === true)
      await desk.cancel(Number(cancel))
      return 'The invitation is cancelled.'
    })
  })
  host.print(text)
}

async function all(desk: InvitationDesk): Promise<PendingInvitation[]> {
  const found: PendingInvitation[] = []
  for (let from: number | undefined = 0; from !== undefined; ) {
    const page: Awaited<ReturnType<InvitationDesk['list']>> = await desk.list({ from, limit: 1_000 })
    found.push(...page.invitations)
    from = page.next_from
  }
  return found
}

function shown(found: readonly PendingInvitation[], json: boolean): string {
  if (json) return JSON.stringify(found, undefined, 2)
  const rows = found.map((one) => [
    ...[String(one.id), minute(one.created_ts), minute(one.expires_ts), one.state],
    ...[one.address, one.sender, one.room_id, one.bound_to ?? '-'],
  ])
  return table([['id', 'made (UTC)', 'ends (UTC)', 'state', 'address', 'by', 'to', 'bound to'], ...rows])
}
