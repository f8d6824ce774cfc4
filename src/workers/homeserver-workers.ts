import type { AccountServices } from '../domain/accounts/account-services.ts'
import { type AdminServices, adminChores } from '../domain/admin/admin-services.ts'
import { type AppserviceServices, appserviceChores } from '../domain/appservices/appservice-services.ts'
import type { HomeserverBase } from '../domain/base.ts'
import { contactChore } from '../domain/contact/contact-services.ts'
import { delayedEventChores } from '../domain/delayed-events/chores.ts'
import type { DelayedEvents } from '../domain/delayed-events/delayed-events.ts'
import { type FederationServices, federationChores } from '../domain/federation/federation-services.ts'
import { createLostEvents } from '../domain/federation/lost-events.ts'
import type { SendingServices } from '../domain/federation/sending-services.ts'
import { identityChores } from '../domain/identity/identity-services.ts'
import { type LifecyclePart, worker } from '../domain/lifecycle.ts'
import type { Sweep } from '../domain/media/sweep.ts'
import { newLoginChores } from '../domain/new-logins/notes.ts'
import { createNewLoginTeller } from '../domain/new-logins/teller.ts'
import type { Archives } from '../domain/oauth/archive/archives.ts'
import { oauthChores } from '../domain/oauth/oauth-services.ts'
import type { ActingServices } from '../domain/rooms/acting-services.ts'
import type { ReceivingServices } from '../domain/rooms/receiving-services.ts'
import type { RoomBase } from '../domain/rooms/room-base-services.ts'
import { stickyEventChores } from '../domain/rooms/write/sticky-events.ts'
import type { WritingServices } from '../domain/rooms/writing-services.ts'
import type { SyncBase } from '../domain/sync/sync-base.ts'
import { startAccountExpirer } from './account-expirer.ts'
import { startArchiveMaker } from './archive-maker.ts'
import { startDeactivationRunner } from './deactivation-runner.ts'
import { startDelayedEventSender } from './delayed-event-sender.ts'
import { startDeviceListRenewer } from './device-list-renewer.ts'
import { startGuestRemover } from './guest-remover.ts'
import { startHistoryPurger } from './history-purger.ts'
import { startJanitor } from './janitor.ts'
import { startListAclKeeper } from './list-acl-keeper.ts'
import { startListBanKeeper } from './list-ban-keeper.ts'
import { startMediaSweeper } from './media-sweeper.ts'
import { startNewLoginTeller } from './new-login-teller.ts'
import { startNewcomerLeader } from './newcomer-leader.ts'
import { startOverviewWatcher } from './overview-watcher.ts'
import { startRegistrationReloader } from './registration-reloader.ts'
import { startRestoreRecovery } from './restore-recovery.ts'
import { startRetentionRounds } from './retention-rounds.ts'
import { startRoomDeleter } from './room-deleter.ts'
import { startRoomUpgrader } from './room-upgrader.ts'
import { startStaleDeviceRemover } from './stale-device-remover.ts'
import { startUserRedactor } from './user-redactor.ts'

type RecoveryParts = Pick<
  Parameters<typeof homeserverWorkers>[0],
  'base' | 'roomBase' | 'syncBase' | 'sending' | 'rooms'
>

function restoreRecovery({ base, roomBase, syncBase, sending, rooms }: RecoveryParts): LifecyclePart {
  const { config, db, clock, log } = base
  const { registry, restoredRooms } = roomBase
  const { receiver } = rooms.receiving
  const own = { serverName: config.server_name, db, clock, log }
  const lostEvents = createLostEvents({ ...own, peers: sending.peers, registry, receiver })
  const { deviceLists } = syncBase
  return worker('recovery after a restore', () =>
    startRestoreRecovery({ db, clock, log, lostEvents, restoredRooms, deviceLists }),
  )
}

/** What a homeserver does by itself, in the order in which it begins. */
export function homeserverWorkers(parts: {
  readonly base: Pick<HomeserverBase, 'config' | 'db' | 'clock' | 'random' | 'log' | 'messenger' | 'restores'>
  readonly roomBase: Pick<RoomBase, 'events' | 'registry' | 'searchSignals' | 'restoredRooms'>
  readonly syncBase: Pick<SyncBase, 'deviceLists'>
  readonly sending: Pick<SendingServices, 'peers'>
  readonly rooms: {
    position(): number
    readonly writing: Pick<WritingServices, 'guests'>
    readonly receiving: Pick<ReceivingServices, 'receiver'>
    readonly acting: Pick<ActingServices, 'deletions' | 'historyPurges' | 'retention' | 'upgrades'>
  }
  readonly accounts: Pick<AccountServices, 'deactivation' | 'newLogins'>
  readonly admin: Pick<
    AdminServices,
    'terms' | 'redactions' | 'notices' | 'views' | 'newcomers' | 'staleDevices' | 'listBans' | 'listAcls'
  >
  readonly federation: Pick<FederationServices, 'missedDeviceLists'>
  readonly appservices: AppserviceServices
  readonly media: { readonly sweep: Sweep }
  readonly pushing: LifecyclePart
  readonly searchIndex: LifecyclePart
  readonly directoryIndex: LifecyclePart
  readonly calls: { readonly delayedEvents: DelayedEvents }
  readonly archives: Archives
}): readonly LifecyclePart[] {
  const { config, db, clock, random, log, messenger } = parts.base
  const { guests } = parts.rooms.writing
  const { deactivation, newLogins: notes } = parts.accounts
  const { notices, newcomers, listBans, listAcls } = parts.admin
  const teller = createNewLoginTeller({ config, db, clock, random, log, messenger, notices, notes })
  const { deletions, historyPurges, retention, upgrades } = parts.rooms.acting
  const { appservices } = parts
  const { sweep } = parts.media
  const chores = [
    ...identityChores(config),
    contactChore(config),
    ...adminChores,
    ...federationChores,
    ...appserviceChores,
    ...oauthChores,
    ...newLoginChores,
    ...delayedEventChores,
    ...stickyEventChores,
  ]
  return [
    parts.pushing,
    ...(parts.base.restores.epoch === '' ? [] : [restoreRecovery(parts)]),
    parts.searchIndex,
    parts.directoryIndex,
    worker('media sweeper', () => startMediaSweeper({ sweep, log })),
    worker('janitor', () => startJanitor({ db, clock, log, chores })),
    worker('guest remover', () => startGuestRemover(guests, log)),
    worker('room deleter', () => startRoomDeleter(deletions, log)),
    worker('history purger', () => startHistoryPurger(historyPurges, log)),
    ...(retention ? [worker('retention rounds', () => startRetentionRounds(retention, log))] : []),
    worker('user redactor', () => startUserRedactor(parts.admin.redactions, log)),
    ...(listBans ? [worker('list ban keeper', () => startListBanKeeper(listBans, log))] : []),
    ...(listAcls ? [worker('list ACL keeper', () => startListAclKeeper(listAcls, log))] : []),
    worker('device list renewer', () => startDeviceListRenewer(parts.federation.missedDeviceLists, log)),
    worker('room upgrader', () => startRoomUpgrader(upgrades, log)),
    worker('registration reloader', () => startRegistrationReloader({ config, appservices, log })),
    worker('delayed event sender', () => startDelayedEventSender(parts.calls.delayedEvents, log)),
    worker('account expirer', () => startAccountExpirer(parts.admin.terms, log)),
    worker('overview watcher', () => startOverviewWatcher(parts.admin.views.history, log)),
    ...(newcomers ? [worker('newcomer leader', () => startNewcomerLeader(newcomers, log))] : []),
    worker('stale device remover', () => startStaleDeviceRemover(parts.admin.staleDevices, log)),
    worker('archive maker', () => startArchiveMaker(parts.archives, log)),
    worker('new login teller', () => startNewLoginTeller(teller, log)),
    worker('deactivation runner', () => startDeactivationRunner(deactivation, log)),
  ]
}
