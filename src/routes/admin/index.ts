import type { Endpoint } from '../../http/endpoint.ts'
import { blockRoom } from './block-room.ts'
import { cancelInvitation } from './cancel-invitation.ts'
import { createRegistrationToken } from './create-registration-token.ts'
import { deactivateUser } from './deactivate-user.ts'
import { deleteMedia } from './delete-media.ts'
import { deleteOldMedia } from './delete-old-media.ts'
import { deleteRegistrationToken } from './delete-registration-token.ts'
import { deleteRoom } from './delete-room.ts'
import { deleteUserDevice } from './delete-user-device.ts'
import { deleteUserDevices } from './delete-user-devices.ts'
import { deleteUserMedia } from './delete-user-media.ts'
import { deleteUserRateLimit } from './delete-user-rate-limit.ts'
import { eraseIdentityPerson } from './erase-identity-person.ts'
import { findUserByExternalId } from './find-user-by-external-id.ts'
import { findUserByThreepid } from './find-user-by-threepid.ts'
import { getAdminLockUser } from './get-admin-lock-user.ts'
import { getAdminSuspendUser } from './get-admin-suspend-user.ts'
import { getEvent } from './get-event.ts'
import { getMedia } from './get-media.ts'
import { getRegistrationNonce } from './get-registration-nonce.ts'
import { getRegistrationToken } from './get-registration-token.ts'
import { getRoom } from './get-room.ts'
import { getRoomDeletion } from './get-room-deletion.ts'
import { getRoomState } from './get-room-state.ts'
import { getServerVersion } from './get-server-version.ts'
import { getStatistics } from './get-statistics.ts'
import { getUser } from './get-user.ts'
import { getUserAccountData } from './get-user-account-data.ts'
import { getUserAdmin } from './get-user-admin.ts'
import { getUserDevice } from './get-user-device.ts'
import { getUserJoinedRooms } from './get-user-joined-rooms.ts'
import { getUserMemberships } from './get-user-memberships.ts'
import { getUserRateLimit } from './get-user-rate-limit.ts'
import { getUserSessions } from './get-user-sessions.ts'
import { isRoomBlocked } from './is-room-blocked.ts'
import { isUsernameAvailable } from './is-username-available.ts'
import { joinUser } from './join-user.ts'
import { listActs } from './list-acts.ts'
import { listInvitations } from './list-invitations.ts'
import { listMediaUsage } from './list-media-usage.ts'
import { listRegistrationTokens } from './list-registration-tokens.ts'
import { listRoomDeletions } from './list-room-deletions.ts'
import { listRoomMedia } from './list-room-media.ts'
import { listRoomMembers } from './list-room-members.ts'
import { listRooms } from './list-rooms.ts'
import { listUserDevices } from './list-user-devices.ts'
import { listUserMedia } from './list-user-media.ts'
import { listUserPushers } from './list-user-pushers.ts'
import { listUsers } from './list-users.ts'
import { listUsersByState } from './list-users-by-state.ts'
import { logOutUser } from './log-out-user.ts'
import { loginAsUser } from './login-as-user.ts'
import { makeRoomAdmin } from './make-room-admin.ts'
import { protectMedia } from './protect-media.ts'
import { purgeMediaCache } from './purge-media-cache.ts'
import { putUser } from './put-user.ts'
import { quarantineMedia } from './quarantine-media.ts'
import { quarantineRoomMedia } from './quarantine-room-media.ts'
import { quarantineUserMedia } from './quarantine-user-media.ts'
import { registerBySecret } from './register-by-secret.ts'
import { resetUserPassword } from './reset-user-password.ts'
import { rotateSigningKey } from './rotate-signing-key.ts'
import { sendNotice } from './send-notice.ts'
import { sendNoticeOnce } from './send-notice-once.ts'
import { setAdminLockUser } from './set-admin-lock-user.ts'
import { setAdminSuspendUser } from './set-admin-suspend-user.ts'
import { setUserAdmin } from './set-user-admin.ts'
import { setUserRateLimit } from './set-user-rate-limit.ts'
import { showIdentityPerson } from './show-identity-person.ts'
import { suspendUser } from './suspend-user.ts'
import { unprotectMedia } from './unprotect-media.ts'
import { unquarantineMedia } from './unquarantine-media.ts'
import { updateRegistrationToken } from './update-registration-token.ts'
import { updateUserDevice } from './update-user-device.ts'

/** Administration: the paths and shapes that administrators' tools know, and a few of our own under `/_hearth/admin`. */
export const adminEndpoints: readonly Endpoint[] = [
  getServerVersion,
  getRegistrationNonce,
  registerBySecret,
  listUsers,
  listUsersByState,
  getUser,
  putUser,
  findUserByThreepid,
  findUserByExternalId,
  getUserSessions,
  deactivateUser,
  resetUserPassword,
  getUserAdmin,
  setUserAdmin,
  suspendUser,
  getAdminSuspendUser,
  setAdminSuspendUser,
  getAdminLockUser,
  setAdminLockUser,
  loginAsUser,
  logOutUser,
  listUserDevices,
  getUserDevice,
  updateUserDevice,
  deleteUserDevice,
  deleteUserDevices,
  getUserJoinedRooms,
  getUserMemberships,
  getUserAccountData,
  listUserPushers,
  getUserRateLimit,
  setUserRateLimit,
  deleteUserRateLimit,
  isUsernameAvailable,
  listRegistrationTokens,
  createRegistrationToken,
  getRegistrationToken,
  updateRegistrationToken,
  deleteRegistrationToken,
  listRooms,
  getRoom,
  listRoomMembers,
  getRoomState,
  getEvent,
  isRoomBlocked,
  blockRoom,
  deleteRoom,
  listRoomDeletions,
  getRoomDeletion,
  makeRoomAdmin,
  joinUser,
  getMedia,
  deleteMedia,
  deleteOldMedia,
  quarantineMedia,
  unquarantineMedia,
  protectMedia,
  unprotectMedia,
  listRoomMedia,
  quarantineRoomMedia,
  quarantineUserMedia,
  listUserMedia,
  deleteUserMedia,
  purgeMediaCache,
  listMediaUsage,
  sendNotice,
  sendNoticeOnce,
  listInvitations,
  cancelInvitation,
  showIdentityPerson,
  eraseIdentityPerson,
  listActs,
  getStatistics,
  rotateSigningKey,
]
