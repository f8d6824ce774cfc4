import { forgetNonces, forgetOperatorTokens } from '../../store/accounts/operator-tokens.ts'
import type { Tx } from '../../store/db/db.ts'
import { forgetPurges } from '../../store/rooms/history-purges.ts'
import { forgetReports } from '../../store/rooms/reports.ts'
import { forgetDeletions } from '../../store/rooms/room-deletions.ts'
import { forgetUserRedactions } from '../../store/rooms/user-redactions.ts'
import type { AccountServices } from '../accounts/account-services.ts'
import type { ExclusiveUsers } from '../accounts/exclusive-users.ts'
import { createNewcomers, type Newcomers } from '../accounts/upkeep/newcomers.ts'
import { createStaleDevices, type StaleDevices } from '../accounts/upkeep/stale-devices.ts'
import type { AppserviceServices } from '../appservices/appservice-services.ts'
import type { HomeserverBase } from '../base.ts'
import type { Contacts } from '../contact/contacts.ts'
import type { SendingServices } from '../federation/sending-services.ts'
import { createInvitationDesk, type InvitationDesk } from '../identity/invitation-desk.ts'
import { REPORTS_KEPT_MS } from '../limits/reports.ts'
import { type Crowds, createCrowds } from '../moderation/crowds.ts'
import { createListAcls, type ListAcls } from '../moderation/list-acls.ts'
import { createListBans, type ListBans } from '../moderation/list-bans.ts'
import { createListPreview, type ListPreview } from '../moderation/list-preview.ts'
import type { PolicyLists } from '../moderation/policy-lists.ts'
import { createUserRedactions, type UserRedactions } from '../moderation/user-redactions.ts'
import type { RoomDeletions } from '../rooms/act/deletion/deletions.ts'
import type { HistoryPurges } from '../rooms/act/deletion/history-purges.ts'
import type { ActingServices } from '../rooms/acting-services.ts'
import type { ReadingServices } from '../rooms/reading-services.ts'
import type { RoomBlocks } from '../rooms/room/blocks.ts'
import type { RoomBase } from '../rooms/room-base-services.ts'
import type { WritingServices } from '../rooms/writing-services.ts'
import type { SearchDesk } from '../search/search-signals.ts'
import type { DirectoryIndex } from '../user-directory/directory-index.ts'
import { type AccountTerms, createAccountTerms } from './account-terms.ts'
import { type Approvals, createApprovals } from './approvals.ts'
import { type Audit, createAudit } from './audit.ts'
import { type BackgroundUpdates, createBackgroundUpdates } from './background-updates.ts'
import type { Diagnostics } from './diagnostics.ts'
import { createFederationDesk, type FederationDesk } from './federation-desk.ts'
import { createOperators, type Operators } from './operators.ts'
import { createRegistrationTokenDesk, type RegistrationTokenDesk } from './registration-token-desk.ts'
import { createReportDesk, type ReportDesk } from './report-desk.ts'
import { createReportInbox, type ReportInbox } from './report-inbox.ts'
import { createRestraints, type Restraints } from './restraints.ts'
import { createRoomDesk, type RoomDesk } from './room-desk.ts'
import { createRoomPower, type RoomPower } from './room-power.ts'
import { createRoomReading, type RoomReading } from './room-reading.ts'
import { createServerNotices, type ServerNotices } from './server-notices.ts'
import { createSharedSecret, type SharedSecret } from './shared-secret.ts'
import { createStatistics, type Statistics } from './statistics.ts'
import { createUserDesk, type UserDesk } from './user-desk.ts'
import { createUserEditing, type UserEditing } from './user-editing.ts'
import { type AdminViews, createAdminViews } from './views/admin-views.ts'

/** The services for operators. */
export interface AdminServices {
  readonly operators: Operators
  readonly audit: Audit
  readonly sharedSecret: SharedSecret
  readonly users: UserDesk
  readonly userEditing: UserEditing
  readonly restraints: Restraints
  readonly statistics: Statistics
  readonly views: AdminViews
  readonly registrationTokens: RegistrationTokenDesk
  readonly invitations: InvitationDesk
  readonly terms: AccountTerms
  readonly federation: FederationDesk
  readonly backgroundUpdates: BackgroundUpdates
  readonly rooms: RoomDesk
  readonly roomReading: RoomReading
  readonly redactions: UserRedactions
  readonly roomPower: RoomPower
  readonly roomBlocks: RoomBlocks
  readonly roomDeletions: RoomDeletions
  readonly historyPurges: HistoryPurges
  readonly notices: ServerNotices
  readonly reports: ReportDesk
  readonly reportInbox: ReportInbox
  readonly approvals: Approvals
  readonly policyLists: PolicyLists
  readonly listPreview: ListPreview
  /** Undefined where policy lists put nobody out of rooms. */
  readonly listBans: ListBans | undefined
  /** Undefined where policy lists change no server ACLs. */
  readonly listAcls: ListAcls | undefined
  readonly crowds: Crowds
  /** Undefined where newcomers are led nowhere. */
  readonly newcomers: Newcomers | undefined
  readonly staleDevices: StaleDevices
  readonly search: SearchDesk
  readonly diagnostics: Diagnostics
}

export interface AdminParts {
  readonly base: Pick<
    HomeserverBase,
    'config' | 'db' | 'clock' | 'random' | 'log' | 'metrics' | 'diagnostics' | 'users'
  >
  readonly accounts: AccountServices
  readonly addresses: { readonly contact: { readonly services: { readonly contacts: Contacts } } }
  readonly roomBase: Pick<RoomBase, 'registry' | 'events' | 'shadowBans' | 'searchSignals'>
  readonly searchIndex: SearchDesk
  readonly directoryIndex: DirectoryIndex
  readonly sending: Pick<SendingServices, 'outgoing'>
  readonly rooms: {
    readonly moderation: { readonly policyLists: PolicyLists }
    readonly acting: Pick<ActingServices, 'rooms' | 'blocks' | 'deletions' | 'historyPurges'>
    readonly writing: Pick<WritingServices, 'appender'>
    readonly reading: Pick<ReadingServices, 'openReader' | 'spaces' | 'aliases'>
  }
  readonly appserviceBase: { readonly exclusive: ExclusiveUsers }
  readonly appservices: AppserviceServices
}

export function createAdminServices(parts: AdminParts): AdminServices {
  const { config, db, clock, random, log, diagnostics } = parts.base
  const { appservices } = parts
  const { contacts } = parts.addresses.contact.services
  const { exclusive: exclusiveUsers } = parts.appserviceBase
  const { passwords, sessions, devices, deactivation, profiles, accountData } = parts.accounts
  const { registry, events } = parts.roomBase
  const { rooms, blocks, deletions, historyPurges } = parts.rooms.acting
  const { appender } = parts.rooms.writing
  const { openReader: reader, spaces, aliases } = parts.rooms.reading
  const { policyLists } = parts.rooms.moderation
  const serverName = config.server_name
  const audit = createAudit({ db, clock })
  const users = createUserDesk({ config, db, clock, random, passwords, sessions, devices, deactivation })
  const statistics = createStatistics({ db, clock, sessions })
  const reports = createReportDesk({ db, registry, events })
  const restraints = createRestraints({ config, db, sessions, shadowBans: parts.roomBase.shadowBans })
  const { searchSignals: signals } = parts.roomBase
  const listAcls = createListAcls({ config, db, clock, log, lists: policyLists, registry, appender, signals, audit })
  return {
    audit,
    operators: createOperators({ db, clock, sessions }),
    sharedSecret: createSharedSecret({ config, db, clock, random, passwords, exclusiveUsers, audit }),
    users,
    userEditing: createUserEditing({
      config,
      db,
      clock,
      passwords,
      profiles,
      contacts,
      users,
      exclusiveUsers,
      restraints,
    }),
    restraints,
    statistics,
    views: createAdminViews({ base: parts.base, registry, statistics, appservices: appservices.registry }),
    registrationTokens: createRegistrationTokenDesk({ db, clock, random }),
    invitations: createInvitationDesk({ db, clock }),
    terms: createAccountTerms({ config, db, clock, log, sessions, users: parts.base.users }),
    federation: createFederationDesk({ serverName, db, outgoing: parts.sending.outgoing }),
    backgroundUpdates: createBackgroundUpdates({ search: parts.searchIndex, directory: parts.directoryIndex }),
    roomReading: createRoomReading({ serverName, registry, events, reader, spaces, appender }),
    redactions: createUserRedactions({
      serverName,
      db,
      clock,
      random,
      log,
      users: parts.base.users,
      registry,
      events,
      appender,
    }),
    rooms: createRoomDesk({ db, clock, registry, events }),
    roomPower: createRoomPower({ config, db, registry, appender, rooms }),
    roomBlocks: blocks,
    roomDeletions: deletions,
    historyPurges,
    search: parts.searchIndex,
    diagnostics,
    reports,
    policyLists,
    listBans: createListBans({ config, db, clock, log, lists: policyLists, registry, rooms, signals, audit }),
    listAcls,
    listPreview: createListPreview({ config, db, lists: policyLists, acls: listAcls }),
    approvals: createApprovals({ config, db, sessions, deactivation }),
    reportInbox: createReportInbox({ db, clock, desk: reports }),
    staleDevices: createStaleDevices({ config, db, clock, sessions, devices, audit }),
    newcomers:
      config.registration.auto_join.rooms.length === 0
        ? undefined
        : createNewcomers({ config, db, clock, log, rooms, aliases }),
    crowds: createCrowds({ config, db, sessions, shadowBans: parts.roomBase.shadowBans }),
    notices: createServerNotices({ config, db, clock, random, accountData, registry, rooms, appservices }),
  }
}

const DELETIONS_KEPT_MS = 7 * 24 * 3_600_000

/** What the janitor deletes. */
export const adminChores = [
  forgetOperatorTokens,
  forgetNonces,
  (tx: Tx, now: number, atMost: number) => forgetDeletions(tx, now - DELETIONS_KEPT_MS, atMost),
  (tx: Tx, now: number, atMost: number) => forgetReports(tx, now - REPORTS_KEPT_MS, atMost),
  (tx: Tx, now: number, atMost: number) => forgetUserRedactions(tx, now - DELETIONS_KEPT_MS, atMost),
  (tx: Tx, now: number, atMost: number) => forgetPurges(tx, now - DELETIONS_KEPT_MS, atMost),
] as const
