import type { Endpoint } from '../../http/endpoint.ts'
import { add3pid } from './account/add3pid.ts'
import { bind3pid } from './account/bind3pid.ts'
import { changePassword } from './account/change-password.ts'
import { checkUsernameAvailability } from './account/check-username-availability.ts'
import { deactivateAccount } from './account/deactivate-account.ts'
import { delete3pidFromAccount } from './account/delete3pid-from-account.ts'
import { getAccount3pids } from './account/get-account3pids.ts'
import { getTokenOwner } from './account/get-token-owner.ts'
import { post3pids } from './account/post3pids.ts'
import { register } from './account/register.ts'
import { registrationTokenValidity } from './account/registration-token-validity.ts'
import { requestOpenIdToken } from './account/request-open-id-token.ts'
import { requestTokenToRegisterEmail } from './account/request-token-to-register-email.ts'
import { requestTokenToRegisterMsisdn } from './account/request-token-to-register-msisdn.ts'
import { requestTokenToResetPasswordEmail } from './account/request-token-to-reset-password-email.ts'
import { requestTokenToResetPasswordMsisdn } from './account/request-token-to-reset-password-msisdn.ts'
import { requestTokenTo3pidEmail } from './account/request-token-to3pid-email.ts'
import { requestTokenTo3pidMsisdn } from './account/request-token-to3pid-msisdn.ts'
import { unbind3pidFromAccount } from './account/unbind3pid-from-account.ts'
import { deleteAccountData } from './account-data/delete-account-data.ts'
import { deleteAccountDataPerRoom } from './account-data/delete-account-data-per-room.ts'
import { deleteRoomTag } from './account-data/delete-room-tag.ts'
import { getAccountData } from './account-data/get-account-data.ts'
import { getAccountDataPerRoom } from './account-data/get-account-data-per-room.ts'
import { getRoomTags } from './account-data/get-room-tags.ts'
import { setAccountData } from './account-data/set-account-data.ts'
import { setAccountDataPerRoom } from './account-data/set-account-data-per-room.ts'
import { setRoomTag } from './account-data/set-room-tag.ts'
import { getRtcTransports } from './calls/get-rtc-transports.ts'
import { getTurnServer } from './calls/get-turn-server.ts'
import { deleteDehydratedDevice } from './dehydrated/delete-dehydrated-device.ts'
import { getDehydratedDevice } from './dehydrated/get-dehydrated-device.ts'
import { getDehydratedEvents } from './dehydrated/get-dehydrated-events.ts'
import { postDehydratedEvents } from './dehydrated/post-dehydrated-events.ts'
import { putDehydratedDevice } from './dehydrated/put-dehydrated-device.ts'
import { getDelayedEvent } from './delayed-events/get-delayed-event.ts'
import { getDelayedEvents } from './delayed-events/get-delayed-events.ts'
import { manageDelayedEvent } from './delayed-events/manage-delayed-event.ts'
import { scheduleDelayedEvent } from './delayed-events/schedule-delayed-event.ts'
import { updateDelayedEvent } from './delayed-events/update-delayed-event.ts'
import { deleteDevice } from './devices/delete-device.ts'
import { deleteDevices } from './devices/delete-devices.ts'
import { getDevice } from './devices/get-device.ts'
import { getDevices } from './devices/get-devices.ts'
import { updateDevice } from './devices/update-device.ts'
import { deleteAppserviceRoomDirectoryVisibility } from './directory/delete-appservice-room-directory-visibility.ts'
import { deleteRoomAlias } from './directory/delete-room-alias.ts'
import { getLocalAliases } from './directory/get-local-aliases.ts'
import { getPublicRooms } from './directory/get-public-rooms.ts'
import { getRoomIdByAlias } from './directory/get-room-id-by-alias.ts'
import { getRoomVisibilityOnDirectory } from './directory/get-room-visibility-on-directory.ts'
import { queryPublicRooms } from './directory/query-public-rooms.ts'
import { setRoomAlias } from './directory/set-room-alias.ts'
import { setRoomVisibilityOnDirectory } from './directory/set-room-visibility-on-directory.ts'
import { updateAppserviceRoomDirectoryVisibility } from './directory/update-appservice-room-directory-visibility.ts'
import { getPresence } from './ephemeral/get-presence.ts'
import { postReceipt } from './ephemeral/post-receipt.ts'
import { setPresence } from './ephemeral/set-presence.ts'
import { setReadMarker } from './ephemeral/set-read-marker.ts'
import { setTyping } from './ephemeral/set-typing.ts'
import { deleteRoomKeyBySessionId } from './key-backup/delete-room-key-by-session-id.ts'
import { deleteRoomKeys } from './key-backup/delete-room-keys.ts'
import { deleteRoomKeysByRoomId } from './key-backup/delete-room-keys-by-room-id.ts'
import { deleteRoomKeysVersion } from './key-backup/delete-room-keys-version.ts'
import { getRoomKeyBySessionId } from './key-backup/get-room-key-by-session-id.ts'
import { getRoomKeys } from './key-backup/get-room-keys.ts'
import { getRoomKeysByRoomId } from './key-backup/get-room-keys-by-room-id.ts'
import { getRoomKeysVersion } from './key-backup/get-room-keys-version.ts'
import { getRoomKeysVersionCurrent } from './key-backup/get-room-keys-version-current.ts'
import { postRoomKeysVersion } from './key-backup/post-room-keys-version.ts'
import { putRoomKeyBySessionId } from './key-backup/put-room-key-by-session-id.ts'
import { putRoomKeys } from './key-backup/put-room-keys.ts'
import { putRoomKeysByRoomId } from './key-backup/put-room-keys-by-room-id.ts'
import { putRoomKeysVersion } from './key-backup/put-room-keys-version.ts'
import { claimKeys } from './keys/claim-keys.ts'
import { getKeysChanges } from './keys/get-keys-changes.ts'
import { queryKeys } from './keys/query-keys.ts'
import { uploadCrossSigningKeys } from './keys/upload-cross-signing-keys.ts'
import { uploadCrossSigningSignatures } from './keys/upload-cross-signing-signatures.ts'
import { uploadKeys } from './keys/upload-keys.ts'
import { ban } from './membership/ban.ts'
import { forgetRoom } from './membership/forget-room.ts'
import { getJoinedRooms } from './membership/get-joined-rooms.ts'
import { getMutualRooms } from './membership/get-mutual-rooms.ts'
import { inviteUser } from './membership/invite-user.ts'
import { joinRoom } from './membership/join-room.ts'
import { joinRoomById } from './membership/join-room-by-id.ts'
import { kick } from './membership/kick.ts'
import { knockRoom } from './membership/knock-room.ts'
import { leaveRoom } from './membership/leave-room.ts'
import { unban } from './membership/unban.ts'
import { deleteProfileField } from './profile/delete-profile-field.ts'
import { getProfileField } from './profile/get-profile-field.ts'
import { getUserProfile } from './profile/get-user-profile.ts'
import { patchProfile } from './profile/patch-profile.ts'
import { setProfile } from './profile/set-profile.ts'
import { setProfileField } from './profile/set-profile-field.ts'
import { deletePushRule } from './push/delete-push-rule.ts'
import { getNotifications } from './push/get-notifications.ts'
import { getPushRule } from './push/get-push-rule.ts'
import { getPushRuleActions } from './push/get-push-rule-actions.ts'
import { getPushRules } from './push/get-push-rules.ts'
import { getPushRulesGlobal } from './push/get-push-rules-global.ts'
import { getPushers } from './push/get-pushers.ts'
import { isPushRuleEnabled } from './push/is-push-rule-enabled.ts'
import { postPusher } from './push/post-pusher.ts'
import { setPushRule } from './push/set-push-rule.ts'
import { setPushRuleActions } from './push/set-push-rule-actions.ts'
import { setPushRuleEnabled } from './push/set-push-rule-enabled.ts'
import { getRelatingEvents } from './relations/get-relating-events.ts'
import { getRelatingEventsWithRelType } from './relations/get-relating-events-with-rel-type.ts'
import { getRelatingEventsWithRelTypeAndEventType } from './relations/get-relating-events-with-rel-type-and-event-type.ts'
import { createRendezvous } from './rendezvous/create-rendezvous.ts'
import { createTextRendezvous } from './rendezvous/create-text-rendezvous.ts'
import { deleteRendezvous } from './rendezvous/delete-rendezvous.ts'
import { deleteTextRendezvous } from './rendezvous/delete-text-rendezvous.ts'
import { discoverRendezvous } from './rendezvous/discover-rendezvous.ts'
import { getRendezvous } from './rendezvous/get-rendezvous.ts'
import { getTextRendezvous } from './rendezvous/get-text-rendezvous.ts'
import { putTextRendezvous } from './rendezvous/put-text-rendezvous.ts'
import { updateRendezvous } from './rendezvous/update-rendezvous.ts'
import { reportEvent } from './reports/report-event.ts'
import { reportRoom } from './reports/report-room.ts'
import { reportUser } from './reports/report-user.ts'
import { createRoom } from './rooms/create-room.ts'
import { getEventByTimestamp } from './rooms/get-event-by-timestamp.ts'
import { getEventContext } from './rooms/get-event-context.ts'
import { getJoinedMembersByRoom } from './rooms/get-joined-members-by-room.ts'
import { getMembersByRoom } from './rooms/get-members-by-room.ts'
import { getOneRoomEvent } from './rooms/get-one-room-event.ts'
import { getRoomEvents } from './rooms/get-room-events.ts'
import { getRoomState } from './rooms/get-room-state.ts'
import { getRoomStateWithKey } from './rooms/get-room-state-with-key.ts'
import { getRoomSummary } from './rooms/get-room-summary.ts'
import { postMessage } from './rooms/post-message.ts'
import { postRedaction } from './rooms/post-redaction.ts'
import { redactEvent } from './rooms/redact-event.ts'
import { roomInitialSync } from './rooms/room-initial-sync.ts'
import { sendMessage } from './rooms/send-message.ts'
import { setRoomStateWithKey } from './rooms/set-room-state-with-key.ts'
import { upgradeRoom } from './rooms/upgrade-room.ts'
import { search } from './search/search.ts'
import { getAuthMetadata } from './server/get-auth-metadata.ts'
import { getCapabilities } from './server/get-capabilities.ts'
import { getVersions } from './server/get-versions.ts'
import { getWhoIs } from './server/get-who-is.ts'
import { pingAppservice } from './server/ping-appservice.ts'
import { generateLoginToken } from './session/generate-login-token.ts'
import { getCaller } from './session/get-caller.ts'
import { getLoginFlows } from './session/get-login-flows.ts'
import { login } from './session/login.ts'
import { logout } from './session/logout.ts'
import { logoutAll } from './session/logout-all.ts'
import { redirectToIdp } from './session/redirect-to-idp.ts'
import { redirectToSso } from './session/redirect-to-sso.ts'
import { refresh } from './session/refresh.ts'
import { getSpaceHierarchy } from './spaces/get-space-hierarchy.ts'
import { defineFilter } from './sync/define-filter.ts'
import { getEvents } from './sync/get-events.ts'
import { getFilter } from './sync/get-filter.ts'
import { getOneEvent } from './sync/get-one-event.ts'
import { initialSync } from './sync/initial-sync.ts'
import { slidingSync } from './sync/sliding-sync.ts'
import { sync } from './sync/sync.ts'
import { unstableSlidingSync } from './sync/unstable-sliding-sync.ts'
import { getProtocolMetadata } from './third-party/get-protocol-metadata.ts'
import { getProtocols } from './third-party/get-protocols.ts'
import { queryLocationByAlias } from './third-party/query-location-by-alias.ts'
import { queryLocationByProtocol } from './third-party/query-location-by-protocol.ts'
import { queryUserById } from './third-party/query-user-by-id.ts'
import { queryUserByProtocol } from './third-party/query-user-by-protocol.ts'
import { deleteThreadSubscription } from './threads/delete-thread-subscription.ts'
import { getThreadRoots } from './threads/get-thread-roots.ts'
import { getThreadSubscription } from './threads/get-thread-subscription.ts'
import { getThreadSubscriptions } from './threads/get-thread-subscriptions.ts'
import { setThreadSubscription } from './threads/set-thread-subscription.ts'
import { sendToDevice } from './to-device/send-to-device.ts'
import { searchUserDirectory } from './user-directory/search-user-directory.ts'

/** The client-server interface, in the order of the specification. */
export const clientEndpoints: readonly Endpoint[] = [
  getVersions,

  getLoginFlows,
  login,
  generateLoginToken,
  refresh,
  redirectToSso,
  redirectToIdp,
  logout,
  logoutAll,

  discoverRendezvous,
  createRendezvous,
  getRendezvous,
  updateRendezvous,
  deleteRendezvous,
  createTextRendezvous,
  getTextRendezvous,
  putTextRendezvous,
  deleteTextRendezvous,

  register,
  requestTokenToRegisterEmail,
  requestTokenToRegisterMsisdn,
  checkUsernameAvailability,
  registrationTokenValidity,
  changePassword,
  requestTokenToResetPasswordEmail,
  requestTokenToResetPasswordMsisdn,
  deactivateAccount,

  getAccount3pids,
  post3pids,
  add3pid,
  bind3pid,
  delete3pidFromAccount,
  unbind3pidFromAccount,
  requestTokenTo3pidEmail,
  requestTokenTo3pidMsisdn,

  getTokenOwner,

  getAuthMetadata,
  getCapabilities,

  defineFilter,
  getFilter,

  sync,
  slidingSync,
  unstableSlidingSync,
  getEvents,
  getOneEvent,
  initialSync,

  roomInitialSync,
  getOneRoomEvent,
  getJoinedMembersByRoom,
  getMembersByRoom,
  getRoomState,
  getRoomStateWithKey,
  setRoomStateWithKey,
  getRoomEvents,
  getEventByTimestamp,
  sendMessage,
  postMessage,
  redactEvent,
  postRedaction,

  scheduleDelayedEvent,
  getDelayedEvents,
  getDelayedEvent,
  manageDelayedEvent,
  updateDelayedEvent,

  createRoom,

  setRoomAlias,
  getRoomIdByAlias,
  deleteRoomAlias,
  getLocalAliases,

  getJoinedRooms,
  inviteUser,
  joinRoomById,
  joinRoom,
  knockRoom,
  forgetRoom,
  leaveRoom,
  kick,
  ban,
  unban,

  getMutualRooms,

  getRoomVisibilityOnDirectory,
  setRoomVisibilityOnDirectory,
  getPublicRooms,
  queryPublicRooms,
  getSpaceHierarchy,
  getRoomSummary,

  setTyping,
  postReceipt,
  setReadMarker,

  upgradeRoom,

  getPresence,
  setPresence,

  getThreadRoots,
  search,
  reportEvent,
  reportRoom,
  reportUser,
  getRelatingEvents,
  getRelatingEventsWithRelType,
  getRelatingEventsWithRelTypeAndEventType,
  getThreadSubscription,
  setThreadSubscription,
  deleteThreadSubscription,
  getThreadSubscriptions,
  searchUserDirectory,
  getUserProfile,
  setProfile,
  patchProfile,
  getProfileField,
  setProfileField,
  deleteProfileField,

  getTurnServer,
  getRtcTransports,

  sendToDevice,

  getDevices,
  getDevice,
  updateDevice,
  deleteDevice,
  deleteDevices,

  putDehydratedDevice,
  getDehydratedDevice,
  deleteDehydratedDevice,
  getDehydratedEvents,
  postDehydratedEvents,

  uploadKeys,
  queryKeys,
  claimKeys,
  getKeysChanges,
  uploadCrossSigningKeys,
  uploadCrossSigningSignatures,

  postRoomKeysVersion,
  getRoomKeysVersionCurrent,
  getRoomKeysVersion,
  putRoomKeysVersion,
  deleteRoomKeysVersion,
  putRoomKeyBySessionId,
  getRoomKeyBySessionId,
  deleteRoomKeyBySessionId,
  putRoomKeysByRoomId,
  getRoomKeysByRoomId,
  deleteRoomKeysByRoomId,
  putRoomKeys,
  getRoomKeys,
  deleteRoomKeys,

  getPushers,
  getNotifications,
  postPusher,
  getPushRules,
  getPushRulesGlobal,
  getPushRule,
  isPushRuleEnabled,
  getPushRuleActions,
  setPushRule,
  deletePushRule,
  setPushRuleEnabled,
  setPushRuleActions,

  getAccountData,
  setAccountData,
  deleteAccountData,
  deleteAccountDataPerRoom,
  getRoomTags,
  setRoomTag,
  deleteRoomTag,
  getAccountDataPerRoom,
  setAccountDataPerRoom,

  getEventContext,

  getWhoIs,

  getProtocols,
  getProtocolMetadata,
  queryLocationByProtocol,
  queryUserByProtocol,
  queryLocationByAlias,
  queryUserById,
  pingAppservice,
  deleteAppserviceRoomDirectoryVisibility,
  updateAppserviceRoomDirectoryVisibility,

  requestOpenIdToken,
  getCaller,
]
