import { endpoint } from '../../../http/endpoint.ts'

export const getPushRules = endpoint(
  'GET C/pushrules',
  { auth: 'user', anywhere: true },
  async ({ requester }, { pushRules }) => ({
    global: await pushRules.ruleset(requester),
  }),
)
