import type { Config } from '../../config/schema.ts'
import type { Database } from '../../store/db/db.ts'
import { putKeyApproval, takeKeyApproval } from '../../store/oauth/key-approvals.ts'
import { outOfBand, type UiaStage } from '../accounts/interactive-auth.ts'
import type { UiaFlow } from '../accounts/uia-flows.ts'
import type { Clock } from '../clock.ts'
import { CROSS_SIGNING_APPROVAL_MS } from '../limits/oauth.ts'
import { accountAddress } from './addresses.ts'

/** How the owner of a session that came from OAuth shows that their keys may be replaced: as published, and as clients knew it before. */
export const KEY_RESET_FLOWS: readonly UiaFlow[] = [['m.oauth'], ['org.matrix.cross_signing_reset']]

/** What people allow on the account page: that an app replaces their cross-signing keys (client-server API, "OAuth authentication"). */
export interface KeyApprovals {
  approve(userNid: number): Promise<void>
  /** An app asks again with its session alone after the person has allowed it. An approval is good for one app, once. */
  readonly stage: UiaStage
}

export function createKeyApprovals(deps: {
  readonly db: Database
  readonly clock: Clock
  readonly config: Pick<Config, 'oauth' | 'public_base_url' | 'listen'>
}): KeyApprovals {
  const { db, clock, config } = deps
  const stage: UiaStage = {
    params: () => ({ url: accountAddress(config, 'org.matrix.cross_signing_reset') }),
    prove: outOfBand('Allow it on your account page, and ask again with the session alone.'),
    async poll({ requester }) {
      const isApproved =
        requester !== undefined && (await db.tx((tx) => takeKeyApproval(tx, requester.userNid, clock.now())))
      return isApproved ? {} : undefined
    },
  }
  return {
    approve: (userNid) => db.tx((tx) => putKeyApproval(tx, userNid, clock.now() + CROSS_SIGNING_APPROVAL_MS)),
    stage,
  }
}
