import { endpoint } from '../../../http/endpoint.ts'

export const deletePushRule = endpoint(
  'DELETE C/pushrules/global/{kind}/{ruleId}',
  { auth: 'user', suspended: true, limited: 'other' },
  async ({ requester, params }, { pushRuleEdits }) => {
    await pushRuleEdits.delete(requester, params)
    return {}
  },
)
