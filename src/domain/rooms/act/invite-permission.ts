import { ProtocolError } from '../../../core/errors.ts'
import type { UserId } from '../../../core/ids.ts'
import { INVITE_PERMISSION_TYPES, type InviteVerdict, inviteVerdict } from '../../../core/invite-permission.ts'
import type { JsonObject } from '../../../core/json.ts'
import { getGlobalAccountData } from '../../../store/accounts/account-data.ts'
import type { Reader } from '../../../store/db/db.ts'

/** Who may invite local users, as they say in their account data (client-server API, "Invite permission"). */
export interface InvitePermission {
  verdict(sender: UserId, target: UserId): Promise<InviteVerdict>
  /** @throws ProtocolError `M_INVITE_BLOCKED` if the target wants no invitation of the sender; nothing for users of other servers */
  require(sender: UserId, target: UserId): Promise<void>
}

export function createInvitePermission({ db }: { readonly db: Reader }): InvitePermission {
  async function verdict(sender: UserId, target: UserId): Promise<InviteVerdict> {
    const rows = await getGlobalAccountData(db, target, INVITE_PERMISSION_TYPES)
    if (rows.length === 0) return 'allow'
    const configs: Record<string, JsonObject> = Object.fromEntries(rows.map(({ type, content }) => [type, content]))
    return inviteVerdict(configs, sender)
  }

  return {
    verdict,
    async require(sender, target) {
      if ((await verdict(sender, target)) !== 'block') return
      throw new ProtocolError('M_INVITE_BLOCKED', `${target} does not want to be invited.`)
    },
  }
}
