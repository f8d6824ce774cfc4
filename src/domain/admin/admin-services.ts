import type { Config } from '../../config/schema.ts'
import { forgetNonces, forgetOperatorTokens } from '../../store/accounts/operator-tokens.ts'
import type { Database, Tx } from '../../store/db/db.ts'
import { forgetDeletions } from '../../store/rooms/room-deletions.ts'
import type { AccountServices } from '../accounts/account-services.ts'
import type { ExclusiveUsers } from '../accounts/exclusive-users.ts'
import type { AppserviceServices } from '../appservices/appservice-services.ts'
import type { Clock, Random } from '../clock.ts'
import type { Contacts } from '../contact/contacts.ts'
import { createInvitationDesk, type InvitationDesk } from '../identity/invitation-desk.ts'
import type { RoomDeletions } from '../rooms/act/deletion/deletions.ts'
import type { Rooms } from '../rooms/act/rooms.ts'
import type { RoomBlocks } from '../rooms/room/blocks.ts'
import type { EventCache } from '../rooms/room/event-cache.ts'
import type { RoomRegistry } from '../rooms/room/registry.ts'
import type { Appender } from '../rooms/write/append.ts'
import { type Audit, createAudit } from './audit.ts'
import { createOperators, type Operators } from './operators.ts'
import { createRegistrationTokenDesk, type RegistrationTokenDesk } from './registration-token-desk.ts'
import { createRestraints, type Restraints } from './restraints.ts'
import { createRoomDesk, type RoomDesk } from './room-desk.ts'
import { createRoomPower, type RoomPower } from './room-power.ts'
import { createServerNotices, type ServerNotices } from './server-notices.ts'
import { createSharedSecret, type SharedSecret } from './shared-secret.ts'
import { createStatistics, type Statistics } from './statistics.ts'
import { createUserDesk, type UserDesk } from './user-desk.ts'
import { createUserEditing, type UserEditing } from './user-editing.ts'

/** What operators do with this server. */
export interface AdminServices {
  readonly operators: Operators
  readonly audit: Audit
  readonly sharedSecret: SharedSecret
  readonly users: UserDesk
  readonly userEditing: UserEditing
  readonly restraints: Restraints
  readonly statistics: Statistics
  readonly registrationTokens: RegistrationTokenDesk
  readonly invitations: InvitationDesk
  readonly rooms: RoomDesk
  readonly roomPower: RoomPower
  readonly roomBlocks: RoomBlocks
  readonly roomDeletions: RoomDeletions
  readonly notices: ServerNotices
}

export interface AdminParts {
  readonly config: Config
  readonly db: Database
  readonly clock: Clock
  readonly random: Random
  readonly accounts: AccountServices
  readonly contacts: Contacts
  readonly registry: RoomRegistry
  readonly events: EventCache
  readonly appender: Appender
  readonly rooms: Rooms
  readonly blocks: RoomBlocks
  readonly deletions: RoomDeletions
  readonly exclusiveUsers: ExclusiveUsers
  readonly appservices: AppserviceServices
}

export function createAdminServices(parts: AdminParts): AdminServices {
  const audit = createAudit(parts)
  const deps = { ...parts, ...parts.accounts, audit }
  const users = createUserDesk(deps)
  const restraints = createRestraints(deps)
  return {
    audit,
    operators: createOperators(deps),
    sharedSecret: createSharedSecret(deps),
    users,
    userEditing: createUserEditing({ ...deps, users, restraints }),
    restraints,
    statistics: createStatistics(deps),
    registrationTokens: createRegistrationTokenDesk(deps),
    invitations: createInvitationDesk(parts),
    rooms: createRoomDesk(parts),
    roomPower: createRoomPower(parts),
    roomBlocks: parts.blocks,
    roomDeletions: parts.deletions,
    notices: createServerNotices(deps),
  }
}

const DELETIONS_KEPT_MS = 7 * 24 * 3_600_000

/** What the janitor removes. */
export const adminChores = [
  forgetOperatorTokens,
  forgetNonces,
  (tx: Tx, now: number, atMost: number) => forgetDeletions(tx, now - DELETIONS_KEPT_MS, atMost),
] as const
