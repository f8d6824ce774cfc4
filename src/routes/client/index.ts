import type { Endpoint } from '../../http/endpoint.ts'
import { mediaEndpoints } from '../media/index.ts'
import { add3pid } from './add3pid.ts'
import { ban } from './ban.ts'
import { bind3pid } from './bind3pid.ts'
import { changePassword } from './change-password.ts'
import { checkUsernameAvailability } from './check-username-availability.ts'
import { claimKeys } from './claim-keys.ts'
import { createRoom } from './create-room.ts'
import { deactivateAccount } from './deactivate-account.ts'
import { defineFilter } from './define-filter.ts'
import { deleteAppserviceRoomDirectoryVisibility } from './delete-appservice-room-directory-visibility.ts'
import { deleteDevice } from './delete-device.ts'
import { deleteDevices } from './delete-devices.ts'
import { deleteProfileField } from './delete-profile-field.ts'
import { deleteRoomAlias } from './delete-room-alias.ts'
import { deleteRoomKeyBySessionId } from './delete-room-key-by-session-id.ts'
import { deleteRoomKeys } from './delete-room-keys.ts'
import { deleteRoomKeysByRoomId } from './delete-room-keys-by-room-id.ts'
import { deleteRoomKeysVersion } from './delete-room-keys-version.ts'
import { delete3pidFromAccount } from './delete3pid-from-account.ts'
import { forgetRoom } from './forget-room.ts'
import { generateLoginToken } from './generate-login-token.ts'
import { getAccountData } from './get-account-data.ts'
import { getAccountDataPerRoom } from './get-account-data-per-room.ts'
import { getAccount3pids } from './get-account3pids.ts'
import { getCaller } from './get-caller.ts'
import { getCapabilities } from './get-capabilities.ts'
import { getDevice } from './get-device.ts'
import { getDevices } from './get-devices.ts'
import { getEventByTimestamp } from './get-event-by-timestamp.ts'
import { getEventContext } from './get-event-context.ts'
import { getFilter } from './get-filter.ts'
import { getJoinedMembersByRoom } from './get-joined-members-by-room.ts'
import { getJoinedRooms } from './get-joined-rooms.ts'
import { getKeysChanges } from './get-keys-changes.ts'
import { getLocalAliases } from './get-local-aliases.ts'
import { getLoginFlows } from './get-login-flows.ts'
import { getMembersByRoom } from './get-members-by-room.ts'
import { getOneRoomEvent } from './get-one-room-event.ts'
import { getPresence } from './get-presence.ts'
import { getProfileField } from './get-profile-field.ts'
import { getProtocolMetadata } from './get-protocol-metadata.ts'
import { getProtocols } from './get-protocols.ts'
import { getPublicRooms } from './get-public-rooms.ts'
import { getPushRule } from './get-push-rule.ts'
import { getPushRuleActions } from './get-push-rule-actions.ts'
import { getPushRules } from './get-push-rules.ts'
import { getPushRulesGlobal } from './get-push-rules-global.ts'
import { getPushers } from './get-pushers.ts'
import { getRoomEvents } from './get-room-events.ts'
import { getRoomIdByAlias } from './get-room-id-by-alias.ts'
import { getRoomKeyBySessionId } from './get-room-key-by-session-id.ts'
import { getRoomKeys } from './get-room-keys.ts'
import { getRoomKeysByRoomId } from './get-room-keys-by-room-id.ts'
import { getRoomKeysVersion } from './get-room-keys-version.ts'
import { getRoomKeysVersionCurrent } from './get-room-keys-version-current.ts'
import { getRoomState } from './get-room-state.ts'
import { getRoomStateWithKey } from './get-room-state-with-key.ts'
import { getRoomSummary } from './get-room-summary.ts'
import { getRoomVisibilityOnDirectory } from './get-room-visibility-on-directory.ts'
import { getSpaceHierarchy } from './get-space-hierarchy.ts'
import { getTokenOwner } from './get-token-owner.ts'
import { getTurnServer } from './get-turn-server.ts'
import { getUserProfile } from './get-user-profile.ts'
import { getVersions } from './get-versions.ts'
import { getWhoIs } from './get-who-is.ts'
import { inviteUser } from './invite-user.ts'
import { isPushRuleEnabled } from './is-push-rule-enabled.ts'
import { joinRoom } from './join-room.ts'
import { joinRoomById } from './join-room-by-id.ts'
import { kick } from './kick.ts'
import { knockRoom } from './knock-room.ts'
import { leaveRoom } from './leave-room.ts'
import { login } from './login.ts'
import { logout } from './logout.ts'
import { logoutAll } from './logout-all.ts'
import { pingAppservice } from './ping-appservice.ts'
import { postMessage } from './post-message.ts'
import { postReceipt } from './post-receipt.ts'
import { postRedaction } from './post-redaction.ts'
import { postRoomKeysVersion } from './post-room-keys-version.ts'
import { post3pids } from './post3pids.ts'
import { putRoomKeyBySessionId } from './put-room-key-by-session-id.ts'
import { putRoomKeys } from './put-room-keys.ts'
import { putRoomKeysByRoomId } from './put-room-keys-by-room-id.ts'
import { putRoomKeysVersion } from './put-room-keys-version.ts'
import { queryKeys } from './query-keys.ts'
import { queryLocationByAlias } from './query-location-by-alias.ts'
import { queryLocationByProtocol } from './query-location-by-protocol.ts'
import { queryPublicRooms } from './query-public-rooms.ts'
import { queryUserById } from './query-user-by-id.ts'
import { queryUserByProtocol } from './query-user-by-protocol.ts'
import { redactEvent } from './redact-event.ts'
import { redirectToIdp } from './redirect-to-idp.ts'
import { redirectToSso } from './redirect-to-sso.ts'
import { refresh } from './refresh.ts'
import { register } from './register.ts'
import { registrationTokenValidity } from './registration-token-validity.ts'
import { requestOpenIdToken } from './request-open-id-token.ts'
import { requestTokenToRegisterEmail } from './request-token-to-register-email.ts'
import { requestTokenToRegisterMsisdn } from './request-token-to-register-msisdn.ts'
import { requestTokenToResetPasswordEmail } from './request-token-to-reset-password-email.ts'
import { requestTokenToResetPasswordMsisdn } from './request-token-to-reset-password-msisdn.ts'
import { requestTokenTo3pidEmail } from './request-token-to3pid-email.ts'
import { requestTokenTo3pidMsisdn } from './request-token-to3pid-msisdn.ts'
import { sendMessage } from './send-message.ts'
import { sendToDevice } from './send-to-device.ts'
import { setAccountData } from './set-account-data.ts'
import { setAccountDataPerRoom } from './set-account-data-per-room.ts'
import { setPresence } from './set-presence.ts'
import { setProfileField } from './set-profile-field.ts'
import { setReadMarker } from './set-read-marker.ts'
import { setRoomAlias } from './set-room-alias.ts'
import { setRoomStateWithKey } from './set-room-state-with-key.ts'
import { setRoomVisibilityOnDirectory } from './set-room-visibility-on-directory.ts'
import { setTyping } from './set-typing.ts'
import { sync } from './sync.ts'
import { unban } from './unban.ts'
import { unbind3pidFromAccount } from './unbind3pid-from-account.ts'
import { updateAppserviceRoomDirectoryVisibility } from './update-appservice-room-directory-visibility.ts'
import { updateDevice } from './update-device.ts'
import { uploadCrossSigningKeys } from './upload-cross-signing-keys.ts'
import { uploadCrossSigningSignatures } from './upload-cross-signing-signatures.ts'
import { uploadKeys } from './upload-keys.ts'

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

  getCapabilities,

  defineFilter,
  getFilter,

  sync,

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

  getRoomVisibilityOnDirectory,
  setRoomVisibilityOnDirectory,
  getPublicRooms,
  queryPublicRooms,
  getSpaceHierarchy,
  getRoomSummary,

  setTyping,
  postReceipt,
  setReadMarker,

  getPresence,
  setPresence,

  getUserProfile,
  getProfileField,
  setProfileField,
  deleteProfileField,

  getTurnServer,

  ...mediaEndpoints,

  sendToDevice,

  getDevices,
  getDevice,
  updateDevice,
  deleteDevice,
  deleteDevices,

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
  getPushRules,
  getPushRulesGlobal,
  getPushRule,
  isPushRuleEnabled,
  getPushRuleActions,

  getAccountData,
  setAccountData,
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
