import type { Endpoint } from '../../http/endpoint.ts'
import { getDestination } from './federation/get-destination.ts'
import { listDestinationRooms } from './federation/list-destination-rooms.ts'
import { listDestinations } from './federation/list-destinations.ts'
import { resetDestination } from './federation/reset-destination.ts'
import { cancelInvitation } from './identity/cancel-invitation.ts'
import { eraseIdentityPerson } from './identity/erase-identity-person.ts'
import { listInvitations } from './identity/list-invitations.ts'
import { showIdentityPerson } from './identity/show-identity-person.ts'
import { deleteMedia } from './media/delete-media.ts'
import { deleteOldMedia } from './media/delete-old-media.ts'
import { deleteUserMedia } from './media/delete-user-media.ts'
import { getMedia } from './media/get-media.ts'
import { listMediaUsage } from './media/list-media-usage.ts'
import { listQuarantineChanges } from './media/list-quarantine-changes.ts'
import { listRoomMedia } from './media/list-room-media.ts'
import { listUserMedia } from './media/list-user-media.ts'
import { protectMedia } from './media/protect-media.ts'
import { purgeMediaCache } from './media/purge-media-cache.ts'
import { quarantineMedia } from './media/quarantine-media.ts'
import { quarantineRoomMedia } from './media/quarantine-room-media.ts'
import { quarantineUserMedia } from './media/quarantine-user-media.ts'
import { unprotectMedia } from './media/unprotect-media.ts'
import { unquarantineMedia } from './media/unquarantine-media.ts'
import { addPolicyList } from './moderation/add-policy-list.ts'
import { findCrowd } from './moderation/find-crowd.ts'
import { getRedaction } from './moderation/get-redaction.ts'
import { liftShadowBan } from './moderation/lift-shadow-ban.ts'
import { listPolicyLists } from './moderation/list-policy-lists.ts'
import { previewPolicyList } from './moderation/preview-policy-list.ts'
import { quarantineCrowd } from './moderation/quarantine-crowd.ts'
import { redactCrowd } from './moderation/redact-crowd.ts'
import { redactUser } from './moderation/redact-user.ts'
import { removePolicyList } from './moderation/remove-policy-list.ts'
import { restrainCrowd } from './moderation/restrain-crowd.ts'
import { shadowBanUser } from './moderation/shadow-ban-user.ts'
import { approveAccount } from './registration/approve-account.ts'
import { createRegistrationToken } from './registration/create-registration-token.ts'
import { deleteRegistrationToken } from './registration/delete-registration-token.ts'
import { getRegistrationNonce } from './registration/get-registration-nonce.ts'
import { getRegistrationToken } from './registration/get-registration-token.ts'
import { listApprovals } from './registration/list-approvals.ts'
import { listRegistrationTokens } from './registration/list-registration-tokens.ts'
import { refuseAccount } from './registration/refuse-account.ts'
import { registerBySecret } from './registration/register-by-secret.ts'
import { updateRegistrationToken } from './registration/update-registration-token.ts'
import { decideReport } from './reports/decide-report.ts'
import { deleteEventReport } from './reports/delete-event-report.ts'
import { deleteRoomReport } from './reports/delete-room-report.ts'
import { deleteUserReport } from './reports/delete-user-report.ts'
import { getEventReport } from './reports/get-event-report.ts'
import { getReport } from './reports/get-report.ts'
import { getRoomReport } from './reports/get-room-report.ts'
import { getUserReport } from './reports/get-user-report.ts'
import { listEventReports } from './reports/list-event-reports.ts'
import { listReports } from './reports/list-reports.ts'
import { listRoomReports } from './reports/list-room-reports.ts'
import { listUserReports } from './reports/list-user-reports.ts'
import { noteReport } from './reports/note-report.ts'
import { reopenReport } from './reports/reopen-report.ts'
import { blockRoom } from './rooms/block-room.ts'
import { deleteForwardExtremities } from './rooms/delete-forward-extremities.ts'
import { deleteRoom } from './rooms/delete-room.ts'
import { deleteRoomAndWait } from './rooms/delete-room-and-wait.ts'
import { getEvent } from './rooms/get-event.ts'
import { getHistoryPurge } from './rooms/get-history-purge.ts'
import { getRoom } from './rooms/get-room.ts'
import { getRoomContext } from './rooms/get-room-context.ts'
import { getRoomDeletion } from './rooms/get-room-deletion.ts'
import { getRoomEventAtTime } from './rooms/get-room-event-at-time.ts'
import { getRoomHierarchy } from './rooms/get-room-hierarchy.ts'
import { getRoomMessages } from './rooms/get-room-messages.ts'
import { getRoomState } from './rooms/get-room-state.ts'
import { isRoomBlocked } from './rooms/is-room-blocked.ts'
import { joinUser } from './rooms/join-user.ts'
import { listForwardExtremities } from './rooms/list-forward-extremities.ts'
import { listRoomDeletions } from './rooms/list-room-deletions.ts'
import { listRoomMembers } from './rooms/list-room-members.ts'
import { listRooms } from './rooms/list-rooms.ts'
import { makeRoomAdmin } from './rooms/make-room-admin.ts'
import { purgeHistory } from './rooms/purge-history.ts'
import { getConfigChanges } from './server/get-config-changes.ts'
import { getDiagnostics } from './server/get-diagnostics.ts'
import { getExperimentalFeatures } from './server/get-experimental-features.ts'
import { getRoomSizes } from './server/get-room-sizes.ts'
import { getSearchProgress } from './server/get-search-progress.ts'
import { getServerVersion } from './server/get-server-version.ts'
import { getStatistics } from './server/get-statistics.ts'
import { listActs } from './server/list-acts.ts'
import { rebuildSearch } from './server/rebuild-search.ts'
import { rotateSigningKey } from './server/rotate-signing-key.ts'
import { sendNotice } from './server/send-notice.ts'
import { sendNoticeOnce } from './server/send-notice-once.ts'
import { setExperimentalFeatures } from './server/set-experimental-features.ts'
import { getBackgroundUpdatesEnabled } from './tasks/get-background-updates-enabled.ts'
import { getBackgroundUpdatesStatus } from './tasks/get-background-updates-status.ts'
import { listScheduledTasks } from './tasks/list-scheduled-tasks.ts'
import { setBackgroundUpdatesEnabled } from './tasks/set-background-updates-enabled.ts'
import { startBackgroundJob } from './tasks/start-background-job.ts'
import { allowKeyReplacement } from './users/allow-key-replacement.ts'
import { countJoinedRooms } from './users/count-joined-rooms.ts'
import { countSentInvites } from './users/count-sent-invites.ts'
import { createUserDevice } from './users/create-user-device.ts'
import { deactivateUser } from './users/deactivate-user.ts'
import { deleteUserDevice } from './users/delete-user-device.ts'
import { deleteUserDevices } from './users/delete-user-devices.ts'
import { deleteUserRateLimit } from './users/delete-user-rate-limit.ts'
import { findUserByExternalId } from './users/find-user-by-external-id.ts'
import { findUserByThreepid } from './users/find-user-by-threepid.ts'
import { getAdminLockUser } from './users/get-admin-lock-user.ts'
import { getAdminSuspendUser } from './users/get-admin-suspend-user.ts'
import { getUser } from './users/get-user.ts'
import { getUserAccountData } from './users/get-user-account-data.ts'
import { getUserAdmin } from './users/get-user-admin.ts'
import { getUserDevice } from './users/get-user-device.ts'
import { getUserJoinedRooms } from './users/get-user-joined-rooms.ts'
import { getUserMemberships } from './users/get-user-memberships.ts'
import { getUserRateLimit } from './users/get-user-rate-limit.ts'
import { getUserSessions } from './users/get-user-sessions.ts'
import { isUsernameAvailable } from './users/is-username-available.ts'
import { listUserDevices } from './users/list-user-devices.ts'
import { listUserPushers } from './users/list-user-pushers.ts'
import { listUsers } from './users/list-users.ts'
import { listUsersByState } from './users/list-users-by-state.ts'
import { logOutUser } from './users/log-out-user.ts'
import { loginAsUser } from './users/login-as-user.ts'
import { putUser } from './users/put-user.ts'
import { renewAccount } from './users/renew-account.ts'
import { resetUserPassword } from './users/reset-user-password.ts'
import { searchUsers } from './users/search-users.ts'
import { setAdminLockUser } from './users/set-admin-lock-user.ts'
import { setAdminSuspendUser } from './users/set-admin-suspend-user.ts'
import { setUserAdmin } from './users/set-user-admin.ts'
import { setUserRateLimit } from './users/set-user-rate-limit.ts'
import { suspendUser } from './users/suspend-user.ts'
import { updateUserDevice } from './users/update-user-device.ts'

/** Administration: the paths and shapes of existing admin tools, and a few of our own under `/_hearth/admin`. */
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
  purgeHistory,
  getHistoryPurge,
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
  getDiagnostics,
  getConfigChanges,
  getStatistics,
  rotateSigningKey,
  deleteEventReport,
  getEventReport,
  listEventReports,
  deleteUserReport,
  getUserReport,
  listUserReports,
  deleteRoomReport,
  getRoomReport,
  listRoomReports,
  rebuildSearch,
  getSearchProgress,
  listDestinations,
  getDestination,
  listDestinationRooms,
  resetDestination,
  listQuarantineChanges,
  getRoomMessages,
  getRoomContext,
  getRoomEventAtTime,
  getRoomHierarchy,
  listForwardExtremities,
  deleteForwardExtremities,
  deleteRoomAndWait,
  getRoomSizes,
  getExperimentalFeatures,
  setExperimentalFeatures,
  getBackgroundUpdatesEnabled,
  setBackgroundUpdatesEnabled,
  getBackgroundUpdatesStatus,
  startBackgroundJob,
  listScheduledTasks,
  renewAccount,
  allowKeyReplacement,
  countSentInvites,
  countJoinedRooms,
  searchUsers,
  createUserDevice,
  shadowBanUser,
  liftShadowBan,
  redactUser,
  getRedaction,
  listReports,
  getReport,
  decideReport,
  reopenReport,
  noteReport,
  findCrowd,
  restrainCrowd,
  redactCrowd,
  quarantineCrowd,
  listPolicyLists,
  addPolicyList,
  previewPolicyList,
  removePolicyList,
  listApprovals,
  approveAccount,
  refuseAccount,
]
