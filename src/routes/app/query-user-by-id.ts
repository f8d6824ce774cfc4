import { endpoint } from '../../http/endpoint.ts'

export const queryUserById = endpoint('GET A/users/{userId}', { auth: 'hosted' }, async ({ requester, params }) => {
  await requester.hosted.requireUser(params.userId)
  return {}
})
