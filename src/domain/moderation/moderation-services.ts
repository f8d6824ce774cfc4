import type { HomeserverBase } from '../base.ts'
import type { RoomBase } from '../rooms/room-base-services.ts'
import { createAntispam } from './antispam.ts'
import { createGate, type Gate } from './gate.ts'
import { openPolicyLists, type PolicyLists } from './policy-lists.ts'

/** What is asked before people do something. Made before rooms. */
export interface ModerationServices {
  readonly gate: Gate
  readonly policyLists: PolicyLists
}

export async function openModerationServices(parts: {
  readonly base: Pick<HomeserverBase, 'config' | 'db' | 'clock' | 'log' | 'outbound'>
  readonly roomBase: Pick<RoomBase, 'registry' | 'searchSignals'>
}): Promise<ModerationServices> {
  const { config, db, clock, log, outbound } = parts.base
  const { registry, searchSignals: signals } = parts.roomBase
  const policyLists = await openPolicyLists({ serverName: config.server_name, db, clock, log, registry, signals })
  const antispam = createAntispam({ config, client: outbound.client, clock, log })
  return { policyLists, gate: createGate({ config, db, log, lists: policyLists, antispam }) }
}
