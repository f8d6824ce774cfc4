import { isOwnLeave } from '../../../core/event/content.ts'
import { serverOf } from '../../../core/ids.ts'
import type { Gate } from '../../moderation/gate.ts'
import type { PolicyGate } from '../write/policy-gate.ts'

/**
 * Why events of others are not shown, whoever brings them: their server is banned here, or the room's policy server does not recommend
 * them. Everybody may leave.
 */
export function createObjections(
  gate: Pick<Gate, 'shuns'>,
  policies: Pick<PolicyGate, 'objection'>,
): Pick<PolicyGate, 'objection'> {
  return {
    objection(room, read) {
      const reason = gate.shuns(serverOf(read.pdu.sender))
      if (reason === undefined || isOwnLeave(read.pdu)) return policies.objection(room, read)
      return Promise.resolve(`by a policy list of this server: ${reason}`)
    },
  }
}
