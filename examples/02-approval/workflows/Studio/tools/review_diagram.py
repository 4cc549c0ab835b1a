"""A diagram that a person reviews, and a second question that depends on the answer."""
import uuid
from typing import Any, Dict, Optional

from logs.logging_config import get_workflow_logger
from mozaiksai.core.workflow.outputs.ui_tools import UIToolError, emit_tool_progress_event, use_ui_tool
from workflows.Studio.tools.ledger import note

logger = get_workflow_logger("review_diagram")


async def review_diagram(
    title: str,
    mermaid: str,
    agent_message: str,
    context_variables: Optional[Any] = None,
    **runtime: Any,
) -> Dict[str, Any]:
    chat_id = runtime.get("chat_id") or context_variables.get("chat_id")
    workflow_name = runtime.get("workflow_name") or context_variables.get("workflow_name")
    note("showed the diagram")

    async def ask(component, display, **payload):
        payload.update(
            agent_message_id=f"msg_{uuid.uuid4()}", interaction_type="diagram_review", workflow_name=workflow_name
        )
        return await use_ui_tool(component, payload, chat_id=chat_id, workflow_name=workflow_name, display=display)

    try:
        review = await ask("DiagramReview", "artifact", title=title, diagram=mermaid, agent_message=agent_message)
        note("got the review")
        if review.get("status") == "approved":
            second = await ask("SaveDiagram", "inline", agent_message="What shall the file be called?", suggestion="diagram.mmd")
        else:
            second = await ask("DiagramFeedback", "inline", agent_message="What shall change?")
    except UIToolError as error:
        logger.error("the review broke off: %s", error)
        return {"status": "error", "message": str(error)}

    if review.get("status") != "approved":
        context_variables.set("diagram_status", "changes requested")
        return {"status": "needs_changes", "feedback": second.get("text"), "message": f"To change: {second.get('text')}"}

    note("saved the diagram")
    await emit_tool_progress_event("review_diagram", 100, "saved", chat_id=chat_id)
    context_variables.set("diagram_status", "saved")
    return {"status": "success", "file": second.get("file"), "message": f"{title} is saved as {second.get('file')}."}
